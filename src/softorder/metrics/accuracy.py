"""Top-k accuracy of classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.metrics._means import Mean


def topk_accuracy(
    preds: Tensor, target: Tensor, k: int | Sequence[int] = (1, 5), *, ignore_index: int = -100
) -> Tensor:
    """The share of samples whose class is among the k largest scores, for several k in one pass.

    Counts the scores above that of the target: nothing is sorted. Of scores that are equal to it at
    the edge, the target has its share, as if the order were drawn.

    Args:
        preds: scores (C), (N, C) or (N, C, d1, ...): logits or probabilities.
        target: classes (), (N) or (N, d1, ...).
        k: one number, or several.
        ignore_index: samples with this target do not count.

    Returns:
        Accuracies in float64, one for each k; a scalar for a single k. NaN without samples.

    >>> import torch, softorder as so
    >>> preds = torch.tensor([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    >>> so.metrics.topk_accuracy(preds, torch.tensor([2, 0]), k=(1, 2))
    tensor([0.5000, 1.0000], dtype=torch.float64)
    """
    hits, count = _hits(preds, target, _check.counts("k", k), ignore_index)
    accuracies = hits / count
    return accuracies[0] if isinstance(k, int) else accuracies


class TopKAccuracy(Mean):
    """`topk_accuracy` over several batches: update, compute, reset, as in torchmetrics.

    Calling it updates it and returns the accuracies of that batch. `group` and `sync_on_compute`
    are those of `MRR`: compute is over the samples of all ranks.

    >>> import torch, softorder as so
    >>> metric = so.metrics.TopKAccuracy(k=(1, 2))
    >>> metric(torch.tensor([[0.1, 0.6, 0.3]]), torch.tensor([2]))
    tensor([0., 1.], dtype=torch.float64)
    >>> metric.update(torch.tensor([[0.5, 0.2, 0.3]]), torch.tensor([0]))
    >>> metric.compute()
    tensor([0.5000, 1.0000], dtype=torch.float64)
    """

    def __init__(
        self,
        k: int | Sequence[int] = (1, 5),
        *,
        ignore_index: int = -100,
        group: Any = None,
        sync_on_compute: bool = True,
    ) -> None:
        super().__init__(len(_check.counts("k", k)), group=group, sync_on_compute=sync_on_compute)
        self.k = k if isinstance(k, int) else tuple(k)
        self.ignore_index = ignore_index

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Adds a batch."""
        self.add(*_hits(preds, target, _check.counts("k", self.k), self.ignore_index))

    def compute(self) -> Tensor:
        """The accuracies of all batches since the last reset."""
        accuracies = self.mean()
        return accuracies[0] if isinstance(self.k, int) else accuracies

    def forward(self, preds: Tensor, target: Tensor) -> Tensor:
        self.update(preds, target)
        return topk_accuracy(preds, target, self.k, ignore_index=self.ignore_index)

    def extra_repr(self) -> str:
        return f"k={self.k}, ignore_index={self.ignore_index}"


def _hits(
    preds: Tensor, target: Tensor, ks: tuple[int, ...], ignore_index: int
) -> tuple[Tensor, Tensor]:
    """How many samples are hits, for every k, and how many there are."""
    _check.targets.classes(preds, target, ignore_index)
    preds = preds.detach()
    scores = preds if preds.dim() < 3 else preds.movedim(1, -1)
    kept = target != ignore_index
    own = scores.gather(-1, torch.where(kept, target, 0).long().unsqueeze(-1))
    above, equal = (scores > own).sum(-1), (scores == own).sum(-1)
    share = [((k - above) / equal.clamp(min=1)).clamp(0, 1) for k in ks]
    # no score equals NaN: a sample without a score is no hit
    hit = torch.stack(share, -1) * (kept & (equal > 0)).unsqueeze(-1)
    return hit.reshape(-1, len(ks)).sum(0, dtype=torch.float64), kept.sum(dtype=torch.float64)
