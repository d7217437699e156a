"""F-sums of the Laplace density in plain torch: e^-d of neighbours is all that is multiplied."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder.kernels.fsum.problem import Problem, Split, ascending, found_below, prefix_sums

_FAR = 800.0  # e^-d is 0 from here on, in float64
_BLOCK = 16


def fsum(problem: Problem, derivative: int, moment: int) -> Tensor:
    """Σ_i w_i u^moment F^(derivative)(u), in O((m + n) log m)."""
    x, t, count = problem.x, problem.t, problem.sources
    upto = found_below(x, t, count, right=True)
    start = found_below(x, t, count, right=False) if derivative == 2 else upto
    left = _one_side(problem, upto - 1, moment)
    right = _one_side(problem, start, moment, backward=True)
    if derivative == 0:
        return prefix_sums(problem.w).gather(-1, upto) + 0.5 * (right - left)
    right = -right if moment % 2 else right
    return 0.5 * (right - left if derivative == 2 else right + left)


def _one_side(problem: Problem, place: Tensor, moment: int, backward: bool = False) -> Tensor:
    """Σ w_i d^moment e^-d over the sources up to (or from) `place`, d = |t - x_i|/τ."""
    m = problem.x.size
    inside = (place >= 0) & (place < m)
    place = place.clamp(0, m - 1)
    sums = scan(problem.x, problem.w, problem.tau, moment, backward)
    d = problem.offsets(place).abs().clamp(max=_FAR)
    moved = seen_from(d, [s.gather(-1, place) for s in sums])
    return torch.where(inside, moved[moment], 0.0)


def scan(x: Split, w: Tensor, tau: Tensor, moment: int, backward: bool = False) -> list[Tensor]:
    """Σ_{i <= j} w_i d^k e^-d with d = (x_j - x_i)/τ, for k = 0..moment.

    Every factor is an e^-d <= 1 of two sources: nothing overflows, and what underflows is 0.
    """
    if backward:
        mirrored = x.map(lambda v: -v.flip(-1))
        return [s.flip(-1) for s in scan(mirrored, w.flip(-1), tau, moment)]
    return _blocks(x, [w, *(torch.zeros_like(w) for _ in range(moment))], tau)


def _blocks(x: Split, sums: list[Tensor], tau: Tensor) -> list[Tensor]:
    """The scan of moments at x: in blocks, then over the ends of blocks, in O(m)."""
    m, missing = x.size, -x.size % _BLOCK
    if m <= _BLOCK:
        return _doubling(x, sums, tau)
    x = x.map(lambda v: torch.cat([v, v[..., -1:].expand(*v.shape[:-1], missing)], -1))
    x = x.map(lambda v: v.unflatten(-1, (-1, _BLOCK)))
    sums = [pad(s, (0, missing)).unflatten(-1, (-1, _BLOCK)) for s in sums]
    sums, ends = _doubling(x, sums, tau.unsqueeze(-1)), x[..., -1]
    before = _blocks(ends, [s[..., -1] for s in sums], tau)
    d = x[..., 1:, :].minus(ends[..., :-1, None]) / tau.unsqueeze(-1)
    moved = seen_from(d.clamp(max=_FAR), [s[..., :-1, None] for s in before])
    return [
        torch.cat([s[..., :1, :], s[..., 1:, :] + more], -2).flatten(-2)[..., :m]
        for s, more in zip(sums, moved, strict=True)
    ]


def _doubling(x: Split, sums: list[Tensor], tau: Tensor) -> list[Tensor]:
    """The same for a few sources, by doubling steps."""
    step = 1
    while step < x.size:
        d = (x[..., step:].minus(x[..., :-step]) / tau).clamp(max=_FAR)
        moved = seen_from(d, [s[..., :-step] for s in sums])
        sums = [
            torch.cat([s[..., :step], s[..., step:] + more], -1)
            for s, more in zip(sums, moved, strict=True)
        ]
        step *= 2
    return sums


def seen_from(d: Tensor, sums: list[Tensor]) -> list[Tensor]:
    """The moments of the same sources seen from a place that is further away by d."""
    decay = torch.exp(-d)
    moved = []
    for k in range(len(sums)):
        terms = [math.comb(k, i) * d ** (k - i) * sums[i] for i in range(k + 1)]
        moved.append(decay * torch.stack(terms).sum(0))
    return moved


def invert(problem: Problem, levels: Tensor) -> tuple[Tensor, Tensor]:
    """Between two sources FSum is i - L e^-s/2 + R e^-s'/2, with s + s' the gap: a quadratic.

    s = (t - x_i)/τ and s' = (x_{i+1} - t)/τ; L and R sum what is on either side, seen from its
    nearest source. The root is given by its distance from the nearer one, so that the gap may be
    as wide as it likes.
    """
    x, w, tau, count = problem.x, problem.w, problem.tau, problem.sources
    (left,), (right,) = scan(x, w, tau, 0), scan(x, w, tau, 0, backward=True)
    at_sources = ascending(prefix_sums(w)[..., 1:] + 0.5 * ((right - w) - left), count)
    i = torch.searchsorted(at_sources, levels.contiguous(), right=True)  # sources not above t
    below, above = (i - 1).clamp(min=0), torch.minimum(i, count - 1).clamp(min=0)
    L = torch.where(i > 0, left.gather(-1, below), 0.0)
    R = torch.where(i < count, right.gather(-1, above), 0.0)
    return between(x.value.gather(-1, below), x.value.gather(-1, above), L, R, levels - i, tau)


def between(
    below: Tensor, above: Tensor, L: Tensor, R: Tensor, excess: Tensor, tau: Tensor
) -> tuple[Tensor, Tensor]:
    """centre and rest of the root between two neighbours; L = 0 or R = 0 where there is none.

    `excess` is the level without the number of sources up to `below`.
    """
    width = above - below
    s, behind = _distances(L, R, width, excess, tau)
    inner = (L > 0) & (R > 0)
    s, behind = (torch.where(inner, torch.minimum(v.clamp(min=0), width), v) for v in (s, behind))
    from_above = (L == 0) | (inner & (s > behind))
    return torch.where(from_above, above, below), torch.where(from_above, -behind, s)


def _distances(
    L: Tensor, R: Tensor, width: Tensor, excess: Tensor, tau: Tensor
) -> tuple[Tensor, Tensor]:
    """τ s and τ s' with R e^-s' - L e^-s = 2 excess and τ (s + s') = width, nothing cancelling.

    The width may be too large to be measured in τ.
    """
    both = torch.sqrt(excess**2 + L * R * torch.exp(-width / tau))
    log_left, log_right = torch.log(L), torch.log(R)
    middle = 0.5 * (width + tau * (log_left - log_right))
    ahead = torch.where(excess < 0, tau * (log_left - torch.log(both - excess)), middle)
    behind = torch.where(excess > 0, tau * (log_right - torch.log(both + excess)), width - ahead)
    return torch.where(excess > 0, width - behind, ahead), behind
