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
from softorder.methods.roots import all_finite, roots
from softorder.methods.sums import any_sum


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
    x, y = x.gather(-1, rows.order), _ordered(values.double(), rows)
    centre, rest = roots(
        x, levels_of(rows, descending, k).double(), temperature, density, rows.count
    )
    low, high = _range(y.detach(), rows)
    middle = 0.5 * low + 0.5 * high
    w = y - middle
    if rows.finite is not None:
        w = torch.where(rows.places() < rows.finite.unsqueeze(-1), w, 0.0)
    below = _weighted(x, w, centre, rest, temperature, rows.count, density)
    shares = below[..., 1:] - below[..., :-1] + middle
    shares = shares + (shares.detach().clamp(low, high) - shares.detach())  # no rounding leads out
    return _completed(shares.flip(-1) if descending else shares, y, rows, descending)


def by_matrix(scores: Tensor, values: Tensor, p: Tensor, descending: bool) -> Tensor:
    """The same from P (..., k, n). What is absent hides whatever belongs to it."""
    dtype = torch.promote_types(p.dtype, values.dtype)
    p, values = p.to(dtype), values.to(dtype)
    if _check.known_finite(scores):
        return values @ p.mT
    rows = sort_rows(scores)
    present = torch.where((scores == -math.inf).unsqueeze(-2), 0.0, values)
    return _completed(present @ p.mT, _ordered(values, rows), rows, descending, certain=False)


def _weighted(
    x: Tensor,
    y: Tensor,
    centre: Tensor,
    rest: Tensor,
    temperature: Tensor,
    count: Tensor | None,
    density: Density,
) -> Tensor:
    """G at every threshold of every row of y, (..., m, k + 1)."""
    t, beyond = all_finite(centre, rest)
    many = y.shape[:-1]
    x, t, beyond, ends = (v.unsqueeze(-2).expand(*many, -1) for v in (x, t, beyond, centre))
    tau = beside(temperature, x).expand(many[:-1]).unsqueeze(-1).expand(many)
    count = None if count is None else count.unsqueeze(-1).expand(many)
    below = any_sum(x, None, t, beyond, y, tau, count, None, density, 0, 0)
    total = y.sum(-1, keepdim=True)
    return torch.where(ends.isfinite(), below, torch.where(ends > 0, total, 0.0))


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


def _completed(
    shares: Tensor, y: Tensor, rows: SortedRows, descending: bool, certain: bool = True
) -> Tensor:
    """The certain ones share their places, and what is absent has the last ones, one each."""
    if rows.finite is None or rows.present is None or rows.spoiled is None:
        return shares
    place = torch.arange(shares.shape[-1], device=y.device)
    finite, present, spoiled = (v.unsqueeze(-1) for v in (rows.finite, rows.present, rows.spoiled))
    if certain:
        inside = (rows.places() >= finite) & (rows.places() < present)
        mean = torch.where(inside, y, 0.0).sum(-1, keepdim=True) / (present - finite).clamp(min=1)
        theirs = place < present - finite if descending else place >= finite
        shares = torch.where(theirs, mean, shares)
    shares = torch.where(place < present, shares, y[..., : shares.shape[-1]])
    return torch.where(spoiled, math.nan, shares)
