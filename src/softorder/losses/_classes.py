"""What the losses of classifiers share: samples as rows, ignored ones, torch's reductions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels._moved import taken
from softorder.kernels.shards import WHOLE, Whole
from softorder.losses._precision import dtype_of_loss
from softorder.losses._sharded import Cut
from softorder.nn._numbers import Numbered


@dataclass(frozen=True)
class Samples:
    """Scores (rows, C) in float32 at least, the class of every row, and which rows count."""

    scores: Tensor
    target: Tensor  # 0 where ignored
    kept: Tensor | None  # None: all of them
    shape: torch.Size  # of the target as it came
    dtype: torch.dtype  # of the loss
    cut: Cut | None = None  # where other ranks have more classes

    @staticmethod
    def of(scores: Tensor, target: Tensor, ignore_index: int, cut: Cut | None = None) -> Samples:
        all_kept = _check.targets.classes(scores, target, ignore_index, cut and cut.classes)
        dtype = dtype_of_loss(scores)
        x = scores if scores.dim() < 3 else scores.movedim(1, -1)
        x = x.reshape(-1, x.shape[-1]) if x.dim() != 2 else x
        x = x if x.dtype == torch.float64 else x.float()
        y = target.reshape(-1).long()
        if all_kept:
            return Samples(x, y, None, target.shape, dtype, cut)
        # hidden, so that not even a NaN of theirs can be felt
        ignored = y == ignore_index
        x, y = torch.where(ignored.unsqueeze(-1), 0.0, x), torch.where(ignored, 0, y)
        return Samples(x, y, ~ignored, target.shape, dtype, cut)

    @property
    def classes(self) -> int:
        return self.scores.shape[-1] if self.cut is None else self.cut.classes

    def per_sample(self, value: Tensor) -> Tensor:
        """One number for all, or one per row, of what broadcasts over the target."""
        return value if value.dim() == 0 else value.expand(self.shape).reshape(-1)

    def split(self) -> tuple[Tensor, Tensor]:
        """The scores of the targets, and all scores with -inf in their places."""
        own = self.target.unsqueeze(-1)
        others = self.scores.scatter(-1, own, -math.inf)
        return taken(self.scores, own).squeeze(-1), others

    def reduce_weighted(self, losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
        """The losses of the rows, which the weights of their classes are still to be put on."""
        losses = losses if weight is None else losses * weight[self.target]
        return self.reduce(losses, weight, reduction, WHOLE)

    def spread(self, upstream: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
        """The way back of `reduce_weighted`: an upstream for every row, or one for all of them.

        What it says of rows that are ignored does not matter.
        """
        rows = upstream.reshape(-1) if reduction == "none" else upstream
        rows = rows.double() if weight is None else rows.double() * weight[self.target]
        return rows / self._weights(weight, WHOLE) if reduction == "mean" else rows

    def reduce(
        self, losses: Tensor, weight: Tensor | None, reduction: str, others: Whole
    ) -> Tensor:
        """The losses of the rows, weighted already; the mean is that of the weights, too.

        `others` are ranks that have more rows.
        """
        losses = losses if self.kept is None else torch.where(self.kept, losses, 0.0)
        if reduction == "none":
            return losses.reshape(self.shape).to(self.dtype)
        total = others.common(losses.sum())
        if reduction == "mean":
            total = total / self._weights(weight, others)
        return total.to(self.dtype)

    def _weights(self, weight: Tensor | None, others: Whole) -> Tensor | int:
        """The sum of the weights of all rows that count."""
        if weight is not None:
            weights = weight[self.target]
            weights = weights if self.kept is None else torch.where(self.kept, weights, 0)
        elif self.kept is not None:
            weights = self.kept
        elif others.alone:
            return self.target.shape[0]
        else:
            weights = torch.ones_like(self.target)
        return others.add(weights.sum())


class ClassLoss(Numbered):
    """A loss with a whole k, and what torch's losses have."""

    numbers: ClassVar[tuple[str, ...]] = ("k", "ignore_index")
    weight: Tensor | None

    def __init__(
        self,
        k: int = 5,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: str = "mean",
    ) -> None:
        super().__init__()
        _check.count("k", k, least=1)
        _check.weights.per_class(weight)
        _check.reduction(reduction)
        self.k = k
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def options(self) -> dict[str, Any]:
        """The arguments of the function that it stands for."""
        names = "k", "weight", "ignore_index", "reduction"
        return {name: getattr(self, name) for name in names}

    def extra_repr(self) -> str:
        shown = {name: value for name, value in self.options().items() if name != "weight"}
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


class MarginLoss(ClassLoss):
    """One with a margin."""

    numbers: ClassVar[tuple[str, ...]] = (*ClassLoss.numbers, "margin")

    def __init__(self, k: int, margin: float, **options: Any) -> None:
        super().__init__(k, **options)
        _check.positive("margin", margin)
        self.margin = margin

    def options(self) -> dict[str, Any]:
        return {**super().options(), "margin": self.margin}
