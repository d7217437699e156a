"""Fenchel-Young losses of the threshold methods."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder._auto import Temperature, wanted
from softorder.densities import Density
from softorder.kernels.shards import WHOLE, Shards, Whole
from softorder.losses._fenchel_rows import rows_loss
from softorder.losses._lists import reduce_rows
from softorder.losses._precision import dtype_of_loss
from softorder.losses._ragged import distances
from softorder.nn._tempered import Tempered
from softorder.ops import _forms, calibration
from softorder.ops._method import threshold_method
from softorder.ragged import _jagged
from softorder.ragged._rows import Rows
from softorder.ragged.soft import found_temperature
from softorder.relaxations import ThresholdMethod, sharded


def fenchel_young(
    scores: Tensor,
    target: Tensor,
    k: float | Tensor | None = None,
    method: str | Density | object = "laplace",
    *,
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    mask: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the soft top-k p of the scores is from a target y with the same sum, k:

        L = max_π {<scores, π> - τ Σ ψ(π_i)} - (<scores, y> - τ Σ ψ(y_i))

    over {π in [0,1]^n, Σ π = k}, where `so.soft_topk` is the maximiser p and ψ' = F⁻¹. Convex in
    the scores, at least 0, and 0 only where p = y (for a density with jumps: where p could be y).
    Its gradient is p - y. Computed as a sum of terms that are each at least 0,

        L = τ Σ_i (ψ*(u_i) + ψ(y_i) - u_i y_i)      u = (scores - b)/τ,  ψ*' = F.

    For "logistic" each term is a binary cross-entropy of σ(u_i): multi-label training where k
    labels, no more and no fewer, are to be given.

    Args:
        scores: as in `so.soft_topk`.
        target: numbers in [0, 1], shaped as scores, that sum to k along dim: k-hot, or soft.
        k: as in `so.soft_topk`, but without a gradient; None takes the sums of the targets.
        method: "laplace", "logistic", "normal", "cauchy", "uniform", or one of your own with psi.
            For "cauchy" ψ(0) and ψ(1) are infinite, and so is the loss of a k-hot target; its
            gradient is right all the same.
        temperature: as in `so.soft_topk`.
        dim: the axis along which the scores compete; several of them, or None for all, compete as
            one.
        mask: as in `so.soft_topk`; what takes no part has no loss, and its target does not count.
        reduction: "mean" over the rows in which something takes part, "sum", or "none".

    Papers: Learning with Fenchel-Young losses (Blondel et al. 2020); k-hot sampling, proposition 2.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 0.5, 1.0, -1.0], requires_grad=True)
    >>> target = torch.tensor([1.0, 1.0, 0.0, 0.0])
    >>> so.losses.fenchel_young(scores, target, k=2, temperature=0.5).backward()
    >>> p = so.soft_topk(scores.detach(), k=2, temperature=0.5)
    >>> torch.allclose(scores.grad, p - target)
    True
    """
    if _forms.is_jagged(scores):
        return _of_jagged(scores, target, k, method, temperature, dim, mask, reduction)
    if wanted(temperature):
        temperature = _found(temperature, scores, target, k, method, dim, mask)
    temperature, k = _forms.rows_numbers(scores, dim, temperature=temperature, k=k)
    scores, target, dim, mask = _forms.lists(scores, target, dim, mask)
    options: dict[str, Any] = {"method": method, "temperature": temperature}
    if _forms.special(scores, dim):
        return _of_dtensor(scores, target, k, dim, mask, reduction, options)
    return part_of_fenchel_young(scores, target, k, dim, mask, reduction, WHOLE, WHOLE, **options)


def _found(
    temperature: Temperature,
    scores: Tensor,
    target: Tensor,
    k: float | Tensor | None,
    method: object,
    dim: int | tuple[int, ...] | None,
    mask: Tensor | None,
) -> float | Tensor:
    """The temperature that the scores decide, for a choice of as many as the target has."""
    if k is None:
        _check.same_shape("target", target, scores)
        taken = target if mask is None else torch.where(mask, target, 0)
        k = taken.sum(_axis.axes(scores, dim), dtype=torch.float64)
    return calibration.of_topk(temperature, scores, k, method=method, dim=dim, mask=mask)


def part_of_fenchel_young(
    scores: Tensor,
    target: Tensor,
    k: float | Tensor | None,
    dim: int,
    mask: Tensor | None,
    reduction: str,
    shards: Whole,
    others: Whole,
    *,
    method: str | Density | object,
    temperature: float | Tensor,
) -> Tensor:
    """The same where rows are cut among ranks (`shards`), or others have more rows (`others`)."""
    _check.scores(scores, dim)
    _check.temperature(temperature, scores, dim)
    _check.mask(mask, scores)
    _check.reduction(reduction)
    _check.targets.shares(target, scores)
    served = threshold_method("log_soft_topk", method)
    x = _axis.rows(scores, dim, largest=True, mask=mask)
    y = target.to(x.dtype).movedim(dim, -1)
    absent = x == -math.inf
    y = torch.where(absent, 0.0, y)
    sums = shards.add(y.detach().sum(-1, dtype=torch.float64))
    present = shards.add((~absent).sum(-1))
    if k is not None:
        (_check.k if shards.alone else _check.k_below)(k, scores, dim)
        _check.targets.sums(sums, _axis.per_row(k, x, dim), present)
    counts = sums if k is None else _axis.per_row(k, x, dim).detach()
    tau = _axis.per_row(temperature, x, dim)

    def plain(x: Tensor, tau: Tensor) -> Tensor:
        terms = torch.where(absent, 0.0, _terms(served, x, y, counts, tau, shards))
        return tau.to(x.dtype) * shards.common(terms.sum(-1))

    known = served.number is not None and shards.alone and x.shape[-1] > 0
    if known and not y.requires_grad and _check.eager():
        losses = rows_loss(x, tau, y, counts, served.density, plain)
    else:
        losses = plain(x, tau)
    return reduce_rows(losses, present > 0, reduction, dtype_of_loss(scores), others)


def _of_jagged(
    scores: Tensor,
    target: Tensor,
    k: float | Tensor | None,
    method: object,
    temperature: Temperature,
    dim: object,
    mask: Tensor | None,
    reduction: str,
) -> Tensor:
    """Of rows of different lengths, where they are."""
    _check.reduction(reduction)
    jagged = _jagged.unpack(scores, dim)
    rows = Rows.checked(*jagged, _jagged.beside("mask", mask, jagged))
    y = _jagged.beside("target", target, jagged)
    assert y is not None
    _check.targets.shares(y, rows.values)
    served, segments = threshold_method("log_soft_topk", method), rows.segments
    absent = rows.values == -math.inf
    y = torch.where(absent, 0.0, y.to(rows.wide().dtype))
    counts = segments.add_up(y.detach())
    present = segments.add_up((~absent).double())
    if k is not None:
        _check.k_below(k, rows.columns, -1)
        _check.targets.sums(counts, rows.number(k), present)
        counts = rows.number(k).detach().expand(rows.count)
    tau = found_temperature(temperature, rows, counts, method)
    _check.temperature(tau, rows.columns, -1)
    u = distances(rows, counts, tau, served) - served.density.anchored.middle
    terms = torch.where(absent, 0.0, _terms_of(served.density, u, y))
    losses = rows.number(tau) * segments.add_up(terms)
    return reduce_rows(losses, present > 0, reduction, dtype_of_loss(rows.values))


def _of_dtensor(
    scores: Tensor,
    target: Tensor,
    k: float | Tensor | None,
    dim: int,
    mask: Tensor | None,
    reduction: str,
    options: dict[str, Any],
) -> Tensor:
    """With rows that are cut among ranks, or spread over them."""
    axis = dim % scores.dim()
    pieces = _forms.Pieces(scores, (axis,))
    if k is not None and not isinstance(k, Tensor):
        _check.k_among(k, scores.shape[dim], dim)
    k = pieces.number("k", k)
    options = {**options, "temperature": pieces.number("temperature", options["temperature"])}
    y, own = pieces.like_local("target", target), pieces.mask(mask)
    among = pieces.shards, pieces.other_rows
    loss = part_of_fenchel_young(pieces.local, y, k, axis, own, reduction, *among, **options)
    if reduction == "none":
        return pieces.per_row(loss, leading=False, keepdim=False)
    return pieces.alike_result(loss)


def _terms(
    method: ThresholdMethod, x: Tensor, y: Tensor, k: Tensor, tau: Tensor, shards: Whole
) -> Tensor:
    """ψ*(u) + ψ(y) - u y, as y ψ*(-u) + (1 - y) ψ*(u) + ψ(y): nothing cancels for y = 0, 1."""
    law = method.density
    if shards.alone and x.shape[-1] == 0:
        return x  # part of the graph
    if isinstance(shards, Shards):
        u = sharded.distance(x, k, tau, law, shards) - law.anchored.middle
    else:
        u = method.distance(x, k, tau) - law.anchored.middle
    return _terms_of(law, u, y)


def _terms_of(law: Density, u: Tensor, y: Tensor) -> Tensor:
    finite = u.isfinite()
    v = torch.where(finite, u, 0.0)
    terms = y * law.conjugate(-v) + (1 - y) * law.conjugate(v) + law.psi(y)
    miss = torch.where(u > 0, 1 - y, y)  # what is certain costs nothing, or everything
    certain = torch.where(miss > 0, math.inf, 0.0)
    return torch.where(u.isnan(), math.nan, torch.where(finite, terms, certain))


class FenchelYoungLoss(Tempered):
    """`fenchel_young` as a module.

    >>> import torch, softorder as so
    >>> criterion = so.losses.FenchelYoungLoss(2, "logistic", temperature=0.5)
    >>> scores, target = torch.tensor([2.0, 0.5, 1.0, -1.0]), torch.tensor([1.0, 0.0, 1.0, 0.0])
    >>> round(criterion(scores, target).item(), 3)
    0.527
    """

    numbers = ("k", *Tempered.numbers)

    def __init__(
        self,
        k: float | Tensor | None = None,
        method: str | Density | object = "laplace",
        *,
        temperature: Temperature = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        reduction: str = "mean",
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("log_soft_topk", method, temperature, learnable_temperature)
        threshold_method("log_soft_topk", method)
        if k is not None:
            _check.k_alone(k)
        _check.reduction(reduction)
        self.k = k
        self.dim = dim
        self.reduction = reduction

    def forward(self, scores: Tensor, target: Tensor, mask: Tensor | None = None) -> Tensor:
        return fenchel_young(
            scores,
            target,
            self.k,
            self.method,
            temperature=self.temperature,
            dim=self.dim,
            mask=mask,
            reduction=self.reduction,
        )

    def extra_repr(self) -> str:
        return self.describe("k", "method", "temperature", "dim", "reduction")
