"""Metrics of lists over several batches: update, compute, reset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from torch import Tensor

from softorder import _check
from softorder.losses._gains import GAINS
from softorder.metrics._means import Mean
from softorder.metrics.ranking import RULES, Cut, Rule, cuts, judged, sums


class ListMetric(Mean):
    """A function of this package over several batches, as in torchmetrics.

    `update(scores, relevance, mask, weight)` adds the lists of a batch, `compute` gives the mean of
    all lists since the last `reset`, `metric(...)` updates and gives the mean of the batch. Where
    torch.distributed is at work, compute is the mean over the lists of all ranks, and every rank
    has to call it.

    Args:
        k: how many places are judged; several numbers for one result each, None for all places.
        dim: the axis of the lists.
        empty: the value of a list that has nothing relevant; None for lists that do not count.
        group: the process group over which compute adds; None for the default one.
        sync_on_compute: False for the mean of this rank alone.
    """

    name: str  #: of the function

    def __init__(
        self,
        k: Cut = None,
        *,
        dim: int = -1,
        empty: float | None = None,
        group: Any = None,
        sync_on_compute: bool = True,
    ) -> None:
        super().__init__(len(cuts(k)), group=group, sync_on_compute=sync_on_compute)
        if empty is not None:
            _check.number("empty", empty)
        self.k = tuple(k) if isinstance(k, Sequence) else k
        self.dim = dim
        self.empty = empty

    @property
    def rule(self) -> Rule:
        return RULES[self.name]

    def update(
        self,
        scores: Tensor,
        relevance: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> None:
        """Adds the lists of a batch."""
        self.add(*self._sums(scores, relevance, mask, weight))

    def compute(self) -> Tensor:
        """The mean over all lists since the last reset; one for each k."""
        return self._shaped(self.mean())

    def forward(
        self,
        scores: Tensor,
        relevance: Tensor,
        mask: Tensor | None = None,
        weight: Tensor | None = None,
    ) -> Tensor:
        total, count = self._sums(scores, relevance, mask, weight)
        self.add(total, count)
        return self._shaped(total / count)

    def _sums(
        self, scores: Tensor, relevance: Tensor, mask: Tensor | None, weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        found = judged(self.rule, scores, relevance, self.k, self.dim, mask, self.empty)
        return sums(found, scores, self.dim, weight)

    def _shaped(self, means: Tensor) -> Tensor:
        return means if isinstance(self.k, tuple) else means[0]

    def extra_repr(self) -> str:
        return f"k={self.k}, dim={self.dim}, empty={self.empty}"


class NDCG(ListMetric):
    """`ndcg` over several batches; `gain` as there, the other arguments as in `MRR`.

    >>> import torch, softorder as so
    >>> metric = so.metrics.NDCG(k=(1, 3))
    >>> metric.update(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[3, 2, 0]]))
    >>> metric.update(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[0, 0, 1]]))
    >>> metric.compute()
    tensor([0.5000, 0.7847], dtype=torch.float64)
    """

    name = "ndcg"

    def __init__(self, k: Cut = None, *, gain: str = "linear", **options: Any) -> None:
        super().__init__(k, **options)
        _check.choice("gain", gain, GAINS)
        self.gain = gain

    @property
    def rule(self) -> Rule:
        return partial(RULES[self.name], gain=self.gain)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, gain={self.gain!r}"


class MRR(ListMetric):
    """`mrr` over several batches: `update`, `compute`, `reset`, as in torchmetrics.

    Calling it updates it and returns the mean of that batch. Where torch.distributed is at work,
    compute is the mean over the lists of all ranks, and every rank has to call it.

    Args:
        k: how many places are judged; several numbers for one result each, None for all places.
        dim: the axis of the lists.
        empty: the value of a list that has nothing relevant; None for lists that do not count.
        group: the process group over which compute adds; None for the default one.
        sync_on_compute: False for the mean of this rank alone.

    >>> import torch, softorder as so
    >>> metric = so.metrics.MRR()
    >>> metric(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[0, 1, 1]])).item()
    0.5
    >>> metric.update(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[1, 0, 1]]))
    >>> metric.compute().item()
    0.75
    """

    name = "mrr"


class AveragePrecision(ListMetric):
    """`average_precision` over several batches: MAP. The arguments are those of `MRR`.

    >>> import torch, softorder as so
    >>> metric = so.metrics.AveragePrecision()
    >>> metric(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[1, 1, 0]])).item()
    0.833...
    """

    name = "average_precision"


class Precision(ListMetric):
    """`precision` over several batches. The arguments are those of `MRR`.

    >>> import torch, softorder as so
    >>> metric = so.metrics.Precision(k=2)
    >>> metric(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[1, 1, 0]])).item()
    0.5
    """

    name = "precision"


class Recall(ListMetric):
    """`recall` over several batches. The arguments are those of `MRR`.

    >>> import torch, softorder as so
    >>> metric = so.metrics.Recall(k=2)
    >>> metric(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[1, 1, 0]])).item()
    0.5
    """

    name = "recall"


class HitRate(ListMetric):
    """`hit_rate` over several batches. The arguments are those of `MRR`.

    >>> import torch, softorder as so
    >>> metric = so.metrics.HitRate(k=2)
    >>> metric(torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[1, 1, 0]])).item()
    1.0
    """

    name = "hit_rate"
