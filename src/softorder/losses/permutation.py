"""The cross-entropy of a soft permutation and a known order."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check, ragged
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.losses._precision import dtype_of_loss
from softorder.nn._tempered import Tempered
from softorder.ops import _forms, _rows
from softorder.ops._method import computation
from softorder.ops.calibration import of_order
from softorder.ragged import _jagged as jagged


def permutation_cross_entropy(
    scores: Tensor,
    target: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """-log P[target_i, i] of every score: how surely the scores are where they should be.

    P is `so.soft_permutation(scores)` and target_i the place, from 0, where score i belongs. Only n
    entries of P are needed, each between two thresholds t with FSum(t_j) = j:

        P[j, i] = F((t_{j+1} - scores_i)/τ) - F((t_j - scores_i)/τ)

    so nothing of size n×n is formed: time O(n log n) for "laplace" and "uniform", memory O(n). The
    logarithm is taken of differences of tails, in float64: loss and gradient stay finite and right
    however far a score is from its place. Only "uniform" has exact zeros, whose loss is inf.

    Args:
        scores: as in `so.soft_rank`.
        target: integers, shaped as scores: the place of every score in the right order, the
            inverse of an argsort: `y.argsort(-1).argsort(-1)` for known values y.
        method: as in `so.soft_rank`.
        temperature: as in `so.soft_rank`.
        dim: as in `so.soft_rank`.
        descending: True if place 0 belongs to the largest score.
        mask: as in `so.soft_rank`. What takes no part has no loss; the places of the others then
            run from 0 to their number.
        ignore_index: where target has this value there is no loss, but the score takes part.
        reduction: "mean" over what is not ignored, "sum", or "none" for the shape of scores, with
            0 where ignored.

    Paper: LapSum (Struski et al. 2025), section 5.2.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.3, 2.0, -1.0], requires_grad=True)
    >>> target = torch.tensor([1, 2, 0])
    >>> loss = so.losses.permutation_cross_entropy(scores, target, temperature=0.4)
    >>> round(loss.item(), 3)
    0.112
    >>> wrong = torch.tensor([0, 1, 2])
    >>> round(so.losses.permutation_cross_entropy(scores, wrong, temperature=0.4).item(), 3)
    3.745
    """
    if _forms.is_jagged(scores):
        settings = {"method": method, "temperature": temperature, "descending": descending}
        return _jagged(scores, target, dim, mask, ignore_index, reduction, settings)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    if not isinstance(dim, int):
        (tau,) = _forms.rows_numbers(scores, dim, temperature=temperature)
        x, y, _, own = _forms.lists(scores, target, dim, mask)
        found = permutation_cross_entropy(
            x,
            y,
            method=method,
            temperature=tau,
            descending=descending,
            mask=own,
            ignore_index=ignore_index,
            reduction=reduction,
        )
        axes = _axis.axes(scores, dim)
        return _axis.split(found, scores, axes) if reduction == "none" else found
    _rows.check(scores, temperature, dim, descending, mask)
    judged = _check.targets.places(target, scores, dim, ignore_index)
    _check.reduction(reduction)
    compute = computation("permutation_cross_entropy", method)
    x = _rows.rows(scores, dim, mask)
    places = target if dim == -1 or dim == scores.dim() - 1 else target.movedim(dim, -1)
    if ignore_index >= 0:  # what is negative has no loss
        places = torch.where(places == ignore_index, -1, places)
    counted = None  # all of them
    if not (judged and _check.known_finite(x)):
        counted = (places >= 0) & (x > -math.inf)
    _check.targets.once(places, counted)
    if x.shape[-1] == 0:
        losses = x.clone()
    else:
        losses = compute(x, places, _axis.per_row(temperature, x, dim), descending)
    if reduction == "none":
        return losses.to(dtype_of_loss(scores)).movedim(-1, dim)
    total = losses.sum()
    if reduction == "mean":
        total = total / (places.numel() if counted is None else counted.sum())
    return total.to(dtype_of_loss(scores))


def _jagged(
    scores: Tensor,
    target: Tensor,
    dim: int | tuple[int, ...] | None,
    mask: Tensor | None,
    ignore_index: int,
    reduction: str,
    settings: Mapping[str, Any],
) -> Tensor:
    """The same of rows of different lengths, with targets in such rows."""
    _check.reduction(reduction)
    rows = jagged.unpack(scores, dim)
    places, own_mask = jagged.beside("target", target, rows), jagged.beside("mask", mask, rows)
    assert places is not None
    losses = ragged.permutation_cross_entropy(
        *rows, places, mask=own_mask, ignore_index=ignore_index, **settings
    )
    if reduction == "none":
        return jagged.pack(losses.to(dtype_of_loss(rows[0])), rows)
    total = losses.sum(dtype=torch.float64)
    if reduction == "mean":
        judged = (places != ignore_index) & (rows[0] != -math.inf)
        total = total / (judged if own_mask is None else judged & own_mask).sum()
    return total.to(dtype_of_loss(rows[0]))


class PermutationCrossEntropyLoss(Tempered):
    """`permutation_cross_entropy` as a module.

    >>> import torch, softorder as so
    >>> criterion = so.losses.PermutationCrossEntropyLoss(temperature=0.4)
    >>> round(criterion(torch.tensor([0.3, 2.0, -1.0]), torch.tensor([1, 2, 0])).item(), 3)
    0.112
    """

    numbers = ("ignore_index", *Tempered.numbers)

    def __init__(
        self,
        *,
        method: str | object = "laplace",
        temperature: Temperature = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        descending: bool = False,
        ignore_index: int = -100,
        reduction: str = "mean",
        learnable_temperature: bool = False,
    ) -> None:
        operator = "permutation_cross_entropy"
        super().__init__(operator, method, temperature, learnable_temperature)
        _check.reduction(reduction)
        self.dim = dim
        self.descending = descending
        self.ignore_index = ignore_index
        self.reduction = reduction

    def forward(self, scores: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        return permutation_cross_entropy(
            scores,
            target,
            method=self.method,
            temperature=self.temperature,
            dim=self.dim,
            descending=self.descending,
            mask=mask,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        names = "method", "temperature", "dim", "descending", "ignore_index", "reduction"
        return self.describe(*names)
