"""What losses of lists share: one loss per row, of which some do not count."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.kernels.shards import WHOLE, Whole
from softorder.losses._precision import dtype_of_loss
from softorder.nn._tempered import Tempered
from softorder.ops import soft_rank, soft_topk
from softorder.ops._method import method_of


def reduce_rows(
    losses: Tensor, counts: Tensor, reduction: str, dtype: torch.dtype, others: Whole = WHOLE
) -> Tensor:
    """The mean over the rows that count, the sum, or the losses, with 0 where they do not.

    `others` are ranks that have more rows.
    """
    losses = torch.where(counts, losses, 0.0)
    if reduction == "none":
        return losses.to(dtype)
    total = others.common(losses.sum())
    return (total / others.add(counts.sum()) if reduction == "mean" else total).to(dtype)


class RankingLoss(Tempered):
    """A loss of lists: scores and relevances of the same shape, one list along `dim`.

    `criterion(scores, relevance, mask)`: elements where the mask is False are padding; they, and
    scores of -inf, take no part, whatever their relevance. A list that has nothing to be judged by
    costs 0, gets no gradient and does not count in the mean.

    Args:
        method: any of `so.methods()` that serves what the loss is made of.
        temperature: τ > 0, a number or a tensor that broadcasts over the lists.
        dim: the axis of the lists.
        reduction: "mean" over the lists that count, "sum", or "none" for one number per list.
        learnable_temperature: the temperature is a parameter, stored as its logarithm.
    """

    operators: tuple[str, ...]  #: what the method has to serve

    def __init__(
        self,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int = -1,
        reduction: str = "mean",
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__(self.operators[0], method, temperature, learnable_temperature)
        _check.reduction(reduction)
        self.dim = dim
        self.reduction = reduction

    def forward(self, scores: Tensor, relevance: Tensor, mask: Tensor | None = None) -> Tensor:
        _check.scores(scores, self.dim)
        _check.temperature(self.temperature, scores, self.dim)
        _check.mask(mask, scores)
        _check.targets.relevance("relevance", relevance, scores)
        x = _axis.rows(scores, self.dim, largest=True, mask=mask)
        present = x != -math.inf
        # what is padding may be anything
        wanted = torch.where(present, relevance.movedim(self.dim, -1).to(x.dtype), 0.0)
        if x.shape[-1] == 0:
            losses = x.sum(-1)
            return reduce_rows(losses, losses != 0, self.reduction, dtype_of_loss(scores))
        losses, counts = self._losses(x, wanted, present)
        return reduce_rows(losses, counts, self.reduction, dtype_of_loss(scores))

    @abstractmethod
    def _losses(self, x: Tensor, wanted: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of every row, and whether it counts."""

    def _ranks(self, x: Tensor, descending: bool = True) -> Tensor:
        return soft_rank(x, method=self.method, temperature=self.temperature, descending=descending)

    def extra_repr(self) -> str:
        return self.describe("method", "temperature", "dim", "reduction")


class CutLoss(RankingLoss):
    """A loss of the first k places of a list, softly chosen; of all places if k is None."""

    numbers = ("k", *RankingLoss.numbers)

    def __init__(self, k: int | None = None, **options: Any) -> None:
        super().__init__(**options)
        if k is not None:
            _check.count("k", k, least=1)
            method_of("soft_topk", self.method)
        self.k = k

    def _chosen(self, x: Tensor) -> Tensor | float:
        """How much every element is among the first k; 1 without a k."""
        if self.k is None:
            return 1.0
        k = min(self.k, x.shape[-1])
        return soft_topk(x, k, method=self.method, temperature=self.temperature)

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}"
