"""P y of a soft permutation P: what belongs to the scores, in their soft order.

Of a density it needs no P. With the thresholds of P, FSum(t_j) = j, t_0 = -∞ and t_n = +∞,

    (P y)_j = G(t_j) - G(t_{j-1})        G(t) = Σ_i y_i F((t - x_i)/τ)

is a difference of weighted F-sums: O(n) for all j once the scores are sorted, where FSum takes O(n)
itself, and differentiable in scores, temperature and y as these sums are.

Rows of P sum to 1. So y is measured from the middle of its range, which leaves small sums and makes
the result of equal y exact, and the result is in the range of y.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels.formulas import beside
from softorder.kernels.permutation.reference import levels_of
from softorder.kernels.sort.rows import SortedRows, sort_rows
from softorder.relaxations.roots import all_finite, roots
from softorder.relaxations.sums import any_sum


def by_sums(
    scores: Tensor,
    values: Tensor,
    temperature: Tensor,
    descending: bool,
    k: int,
    density: Density,
) -> Tensor:
    """The first k of P y for scores (..., n) and values (..., m, n): (..., m, k) in float64."""
    x = scores.double()
    rows = sort_rows(x)
    x, y = rows.in_order(x), _ordered(values.double(), rows)
    levels = levels_of(rows, descending, k).double()
    below, span = _below(x, y, rows, levels, temperature, density)
    shares = _means(below[..., 1:] - below[..., :-1], span)
    return _completed(shares.flip(-1) if descending else shares, y, rows, descending)


def between(scores: Tensor, places: Tensor, temperature: Tensor, density: Density) -> Tensor:
    """Σ_i x_i (F((t₁ - x_i)/τ) - F((t₀ - x_i)/τ)), FSum(t₀) = place, FSum(t₁) = place + 1.

    For places (..., m) from 0 to the last of every row, whole or not; in float64.
    """
    x = scores.double()
    rows, m = sort_rows(x), places.shape[-1]
    x = rows.in_order(x)
    levels = torch.cat([places, places + 1], -1).expand(*x.shape[:-1], -1)
    levels, order = levels.sort()
    below, span = _below(x, x.unsqueeze(-2), rows, levels, temperature, density)
    below = torch.empty_like(below).scatter(-1, order.unsqueeze(-2), below)
    means = _means(below[..., m:] - below[..., :m], span).squeeze(-2)
    if rows.finite is not None and rows.present is not None:
        means = torch.where(places + 1 > rows.finite, math.inf, means)
        means = torch.where(rows.present > 0, means, math.nan)
    return rows.spoil(means)


def by_matrix(scores: Tensor, values: Tensor, p: Tensor, descending: bool) -> Tensor:
    """The same from P (..., k, n). What is absent hides whatever belongs to it."""
    dtype = torch.promote_types(p.dtype, values.dtype)
    p, values = p.to(dtype), values.to(dtype)
    if _check.known_finite(scores):
        return values @ p.mT
    rows = sort_rows(scores)
    finite = torch.where(scores.isfinite().unsqueeze(-2), values, 0.0)
    return _completed(finite @ p.mT, _ordered(values, rows), rows, descending)


def _below(
    x: Tensor,
    y: Tensor,
    rows: SortedRows,
    levels: Tensor,
    temperature: Tensor,
    density: Density,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """G at every level of every row of y, measured from the middle of its range; and that range."""
    centre, rest = roots(x, levels, temperature, density, rows.count)
    low, high = _range(y.detach(), rows)
    y = y - (0.5 * low + 0.5 * high)
    if rows.finite is not None:
        y = torch.where(rows.places() < rows.finite.unsqueeze(-1), y, 0.0)
    t, beyond = all_finite(centre, rest)
    many = y.shape[:-1]
    x, t, beyond, ends = (v.unsqueeze(-2).expand(*many, -1) for v in (x, t, beyond, centre))
    tau = beside(temperature, x).expand(many[:-1]).unsqueeze(-1).expand(many)
    count = None if rows.count is None else rows.count.unsqueeze(-1).expand(many)
    below = any_sum(x, None, t, beyond, y, tau, count, None, density, 0, 0)
    total = y.sum(-1, keepdim=True)
    below = torch.where(ends.isfinite(), below, torch.where(ends > 0, total, 0.0))
    return below, (low, high)


def _means(shares: Tensor, span: tuple[Tensor, Tensor]) -> Tensor:
    """From the middle of the range back; no rounding leads out of it."""
    low, high = span
    means = shares + (0.5 * low + 0.5 * high)
    return means + (means.detach().clamp(low, high) - means.detach())


def _ordered(values: Tensor, rows: SortedRows) -> Tensor:
    return values.gather(-1, rows.order.unsqueeze(-2).expand(values.shape))


def _range(y: Tensor, rows: SortedRows) -> tuple[Tensor, Tensor]:
    """Smallest and largest of what belongs to finite scores; 0 where there are none."""
    if rows.finite is None:
        return y.amin(-1, keepdim=True), y.amax(-1, keepdim=True)
    finite = rows.places() < rows.finite.unsqueeze(-1)
    low = torch.where(finite, y, math.inf).amin(-1, keepdim=True)
    high = torch.where(finite, y, -math.inf).amax(-1, keepdim=True)
    some = rows.finite.unsqueeze(-1) > 0
    return torch.where(some, low, 0.0), torch.where(some, high, 0.0)


def _completed(shares: Tensor, y: Tensor, rows: SortedRows, descending: bool) -> Tensor:
    """The certain ones share their places, and what is absent has the last ones, one each."""
    if rows.finite is None or rows.present is None or rows.spoiled is None:
        return shares
    place = torch.arange(shares.shape[-1], device=y.device)
    finite, present, spoiled = (v.unsqueeze(-1) for v in (rows.finite, rows.present, rows.spoiled))
    inside = (rows.places() >= finite) & (rows.places() < present)
    mean = torch.where(inside, y, 0.0).sum(-1, keepdim=True) / (present - finite).clamp(min=1)
    theirs = place < present - finite if descending else place >= finite
    shares = torch.where(theirs, mean, shares)
    shares = torch.where(place < present, shares, y[..., : shares.shape[-1]])
    return torch.where(spoiled, math.nan, shares)
