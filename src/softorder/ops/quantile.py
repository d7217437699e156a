"""soft_quantile and soft_median."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder import hard as limits
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.ops import _cut, _forms, _rows
from softorder.ops._interpolation import INTERPOLATIONS, interpolated, places, present
from softorder.ops._method import method_of
from softorder.ops._straight import straight_through
from softorder.ops.calibration import of_order
from softorder.relaxations import Method


def soft_quantile(
    scores: Tensor,
    q: float | Sequence[float] | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    keepdim: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
    interpolation: str = "inverse",
    within: bool = False,
    weights: Tensor | None = None,
) -> Tensor:
    """The value that the part q of the scores lies below, as a smooth function of scores and q.

    With F the CDF of an even density, the method, FSum(t) = Σ_i F((t - scores_i)/τ) counts softly
    how many of the n scores are below t, and

        quantile_q = t  with  FSum(t) = q n.

    With d_i = f((t - scores_i)/τ) and S = Σ d: ∂t/∂scores_i = d_i/S, ∂t/∂q = n τ/S and
    ∂t/∂τ = Σ d_i (t - scores_i)/(τ S). As τ → 0 this is `so.hard.quantile`: a score, or, where q n
    is an integer, a point between two of them (their middle, if the density falls off fast).

    With interpolation="linear" it goes to what torch.quantile gives, and is finite for every q.
    Among the values s_0 ≤ ... ≤ s_{n-1} of `so.soft_sort` torch's place is h = q (n - 1), and

        quantile_q = s_⌊h⌋ + (h - ⌊h⌋) (s_⌈h⌉ - s_⌊h⌋);

    "lower", "higher", "nearest" and "midpoint" take s_⌊h⌋, s_⌈h⌉, the nearer or the mean of both.

    These values lie beyond the scores where many of these are near each other: FSum/n is the
    distribution of a score with noise of the density f(·/τ)/τ, whose variance adds to that of the
    scores. within=True takes a mean of scores instead, Σ_i scores_i P_i, with the mass

        P_i = F((t₁ - scores_i)/τ) - F((t₀ - scores_i)/τ),    FSum(t₀) = h, FSum(t₁) = h + 1

    that each of them has at its place. It goes to the same values as τ → 0, is never outside of
    the scores, and errs to the other side, towards their mean (`so.soft_sort` says by how much).

    Args:
        scores: as in `so.soft_rank`.
        q: a number in [0, 1], a list, or a tensor of them, shaped as for torch.quantile: a scalar,
            or 1-D for several quantiles at once. With more axes, the others broadcast over the rows
            (the shape of scores without `dim`), for a q of every row. May require grad. At q = 0
            the quantile is -inf and at q = 1 it is +inf, if interpolation is "inverse".
        method: as in `so.soft_rank`.
        temperature: as in `so.soft_rank`.
        mask: as in `so.soft_rank`; what takes no part does not count in n.
        dim: the axis that is reduced; several of them, or None for all, are reduced as one.
        keepdim: keep `dim`, with size 1.
        hard: True for the value of `so.hard.quantile` with the gradient of the soft one, known as
            straight-through: what comes next sees a hard choice, and the scores still learn.
        interpolation: "inverse", FSum⁻¹(q n), or one of torch.quantile's: "linear", "lower",
            "higher", "nearest", "midpoint".
        within: True for a mean of scores, which no temperature leads out of their range; for every
            interpolation but "inverse".
        weights: >= 0, broadcasts to scores: how often each of them counts. The quantile solves
            Σ_i w_i F((t - scores_i)/τ) = q Σ w; for interpolation "inverse". May require grad.

    Returns:
        The shape of scores without `dim`; with a leading axis for the quantiles unless q is a
        scalar. NaN where no score takes part. Where more than one t has the level, in a gap wider
        than τ of the uniform density, its middle. Time O(n) for each of up to four quantiles (two,
        if torch's place is between two scores), O(n log n) for any number of them and with
        `within`.

    Paper: LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([[1.0, 2.0, 4.0, 8.0], [0.0, 0.0, 3.0, 3.0]])
    >>> so.soft_quantile(scores, 0.6, temperature=0.1).numpy().round(3)
    array([3.978, 2.908], dtype=float32)
    >>> so.soft_quantile(scores, [0.1, 0.6], temperature=0.1).shape
    torch.Size([2, 2])
    >>> so.soft_quantile(scores, 0.6, temperature=0.0001, interpolation="linear")
    tensor([3.6000, 2.4000])
    >>> so.soft_quantile(torch.zeros(1000), 1.0, interpolation="linear")
    tensor(6.9078)
    >>> so.soft_quantile(torch.zeros(1000), 1.0, interpolation="linear", within=True)
    tensor(0.)
    """
    _check.flag("keepdim", keepdim)
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, soft

        operator = partial(
            soft.soft_quantile,
            method=method,
            temperature=temperature,
            interpolation=interpolation,
            within=within,
            hard=hard,
        )
        return _jagged.quantile(operator, scores, dim, mask, keepdim, q, weights)
    if hard is not False:
        common: dict[str, Any] = {"dim": dim, "keepdim": keepdim, "mask": mask}
        common |= {"interpolation": interpolation, "weights": weights}
        both = partial(soft_quantile, within=within), limits.quantile, hard
        return straight_through(*both, (scores, q), common, method=method, temperature=temperature)
    _check.choice("interpolation", interpolation, INTERPOLATIONS)
    _check.quantiles.within(within, interpolation)
    q = _check.quantiles.as_tensor(q)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    options: dict[str, Any] = {"method": method, "interpolation": interpolation, "within": within}
    if weights is not None:
        _check.quantiles.weights(weights, scores, interpolation)
        weights = weights.expand(scores.shape)
    if _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        if weights is not None:
            options["weights"] = _axis.join(weights, _axis.axes(scores, dim))
        return _forms.per_row(
            soft_quantile,
            _cut.quantile,
            scores,
            dim,
            mask,
            ("q", q),
            {"temperature": temperature},
            options,
            keepdim,
        )
    assert isinstance(dim, int)
    _rows.check(scores, temperature, dim, False, mask)
    _check.q(q, scores, dim)
    served = method_of("soft_quantile", method)
    x = _rows.rows(scores, dim, mask)
    if weights is not None:
        weights = torch.where(x > -torch.inf, _axis.last(weights, dim), 0.0)
    compute = partial(
        _quantiles, served, interpolation=interpolation, within=within, weights=weights
    )
    result = _rows.at_levels(compute, x, _axis.leading_last(q, x), temperature, dim)
    return _axis.leading(result.to(scores.dtype), q, dim, keepdim)


def _quantiles(
    served: Method,
    x: Tensor,
    q: Tensor,
    temperature: Tensor,
    interpolation: str,
    within: bool,
    weights: Tensor | None,
) -> Tensor:
    """For q (..., m) of clean rows (..., n)."""
    method: Any = served  # one with soft_quantile has all that is made of FSum
    if weights is not None:
        return method.weighted_quantile(x, q, temperature, weights)
    if interpolation == "inverse":
        return method.soft_quantile(x, q, temperature)
    n = present(x)
    if within:
        return method.means_between(x, places(q, n, interpolation).at(), temperature)
    return interpolated(
        lambda levels: method.fsum_inverse(x, levels, temperature), q, n, interpolation
    )


def soft_median(
    scores: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    keepdim: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """`soft_quantile` with q = 1/2: as many scores softly below as above.

    It minimises Σ_i h(t - scores_i) where h' = 2F(·/τ) - 1: for τ → 0 the absolute deviation, for
    large τ nearly the square.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([1.0, 2.0, 100.0], requires_grad=True)
    >>> median = so.soft_median(scores, temperature=0.5)
    >>> round(median.item(), 3)
    2.063
    >>> median.backward()
    >>> scores.grad.numpy().round(3)
    array([0.119, 0.881, 0.   ], dtype=float32)
    """
    return soft_quantile(
        scores,
        0.5,
        method=method,
        temperature=temperature,
        dim=dim,
        keepdim=keepdim,
        mask=mask,
        hard=hard,
    )
