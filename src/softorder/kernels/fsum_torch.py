"""Plain-torch kernels of kernels/fsum.py, for every device and every density."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softorder.densities import Density, UserDensity
from softorder.kernels.threshold import solve

_FAR = 800.0  # e^-u is 0 from here on, in float64
_TILE = 1 << 20  # scalars in a tile of the O(m·n) sum


@dataclass
class Problem:
    """The arguments of an F-sum in float64: absent weights, rests and counts filled in."""

    x: Tensor  # (..., m); beyond the count, the last source that counts
    w: Tensor  # (..., m); beyond the count, 0
    t: Tensor  # (..., n)
    rest: Tensor | None
    tau: Tensor  # (..., 1)
    sources: Tensor | int  # (..., 1), how many count
    targets: Tensor | None
    dtype: torch.dtype

    @staticmethod
    def of(
        sources: Tensor,
        targets: Tensor,
        rest: Tensor | None,
        weights: Tensor | None,
        temperature: Tensor,
        source_count: Tensor | None,
        target_count: Tensor | None,
    ) -> Problem:
        rows, m = sources.shape[:-1], sources.shape[-1]
        x = sources.double()
        w = torch.ones_like(x) if weights is None else weights.double()
        count: Tensor | int = m
        if source_count is not None:
            count = source_count.expand(rows).unsqueeze(-1)
            x, w = _cut(x, w, count)
        return Problem(
            x,
            w,
            targets.double(),
            None if rest is None else rest.double(),
            temperature.to(x.device).expand(rows).unsqueeze(-1),
            count,
            None if target_count is None else target_count.expand(rows).unsqueeze(-1),
            sources.dtype,
        )

    def offsets(self, place: Tensor) -> Tensor:
        """(t_j - x_i)/τ for one source i per target."""
        near = self.t - self.x.gather(-1, place)
        return (near if self.rest is None else near + self.rest) / self.tau

    def finish(self, total: Tensor) -> Tensor:
        total = total.to(self.dtype)
        if self.targets is None:
            return total
        return torch.where(_places(total) < self.targets, total, 0.0)


def fsum(problem: Problem, density: Density, derivative: int, moment: int) -> Tensor:
    """Σ_i w_i u^moment F^(derivative)(u) for every target."""
    if problem.x.shape[-1] == 0 or problem.t.numel() == 0:
        return torch.zeros_like(problem.t, dtype=problem.dtype)
    if density.name == "laplace" and not isinstance(density, UserDensity):
        total = _laplace(problem, derivative, moment)
    elif density.name == "uniform" and not isinstance(density, UserDensity):
        total = _uniform(problem, derivative, moment)
    else:
        total = _tiled(problem, density, derivative, moment)
    return problem.finish(total)


def invert(
    sources: Tensor, levels: Tensor, temperature: Tensor, count: Tensor | None, density: Density
) -> tuple[Tensor, Tensor]:
    """centre and rest of the root of every level."""
    rows, m = sources.shape[:-1], sources.shape[-1]
    counts = torch.full((), m, device=sources.device) if count is None else count
    counts = counts.expand(rows).unsqueeze(-1)
    if m == 0 or levels.numel() == 0:
        centre = torch.where(levels > 0, math.inf, -math.inf).to(sources.dtype)
        return centre, torch.zeros_like(centre)
    if density.name == "laplace" and not isinstance(density, UserDensity):
        found = _invert_laplace(sources, levels, temperature, counts)
    elif density.name == "uniform" and not isinstance(density, UserDensity):
        found = _invert_uniform(sources, levels, temperature, counts)
    else:
        found = _invert_by_thresholds(sources, levels, temperature, counts, density)
    return _without_root(*found, levels, counts, sources.dtype)


def _without_root(
    centre: Tensor, rest: Tensor, levels: Tensor, counts: Tensor, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    low, high = levels <= 0, levels >= counts
    centre = torch.where(low, -math.inf, torch.where(high, math.inf, centre))
    return centre.to(dtype), torch.where(low | high, 0.0, rest).to(dtype)


def _cut(x: Tensor, w: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
    present = _places(x) < count
    if x.shape[-1] > 0:
        last = x.gather(-1, (count - 1).clamp(min=0))
        x = torch.where(present, x, torch.where(count > 0, last, 0.0))
    return x, torch.where(present, w, 0.0)


def _places(like: Tensor) -> Tensor:
    return torch.arange(like.shape[-1], device=like.device)


def _found(problem: Problem, right: bool, shift: Tensor | None = None) -> Tensor:
    """How many sources are below t + shift, or not above it (right)."""
    t, rest = problem.t, problem.rest
    if rest is None and shift is None:
        found = torch.searchsorted(problem.x.contiguous(), t.contiguous(), right=right)
        return torch.minimum(found, torch.as_tensor(problem.sources, device=t.device))
    rest = torch.zeros_like(t) if rest is None else rest
    rest = rest if shift is None else rest + shift
    # t + rest is never rounded: a bisection that compares differences.
    low = torch.zeros_like(t, dtype=torch.int64)
    high = low + problem.sources
    for _ in range(problem.x.shape[-1].bit_length()):
        middle = (low + high) // 2
        at = problem.x.gather(-1, middle.clamp(max=problem.x.shape[-1] - 1))
        distance = (t - at) + rest
        below = (distance >= 0) if right else (distance > 0)
        below &= low < high
        low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
    return low


# ---- laplace ------------------------------------------------------------------------------------


def _laplace(problem: Problem, derivative: int, moment: int) -> Tensor:
    upto = _found(problem, right=True)
    left = _one_side(problem, upto - 1, moment)
    start = _found(problem, right=False) if derivative == 2 else upto
    right = _one_side(problem, start, moment, backward=True)
    if derivative == 0:
        return _prefix(problem.w).gather(-1, upto) + 0.5 * (right - left)
    right = -right if moment % 2 else right
    return 0.5 * (right - left if derivative == 2 else right + left)


def _one_side(problem: Problem, place: Tensor, moment: int, backward: bool = False) -> Tensor:
    """Σ w_i d^moment e^-d over the sources up to (or from) `place`, d = |t - x_i|/τ."""
    m = problem.x.shape[-1]
    inside = (place >= 0) & (place < m)
    place = place.clamp(0, m - 1)
    sums = _scan(problem.x, problem.w, problem.tau, moment, backward)
    d = problem.offsets(place).abs().clamp(max=_FAR)
    moved = _shifted([s.gather(-1, place) for s in sums], d)
    return torch.where(inside, moved[moment], 0.0)


def _scan(x: Tensor, w: Tensor, tau: Tensor, moment: int, backward: bool = False) -> list[Tensor]:
    """Σ_{i <= j} w_i d^k e^-d with d = (x_j - x_i)/τ, for k = 0..moment, by doubling steps.

    Every factor is an e^-d <= 1 of two sources: nothing overflows, and what underflows is 0.
    """
    if backward:
        return [s.flip(-1) for s in _scan(-x.flip(-1), w.flip(-1), tau, moment)]
    sums = [w, *(torch.zeros_like(w) for _ in range(moment))]
    step = 1
    while step < x.shape[-1]:
        d = ((x[..., step:] - x[..., :-step]) / tau).clamp(max=_FAR)
        moved = _shifted([s[..., :-step] for s in sums], d)
        sums = [
            torch.cat([s[..., :step], s[..., step:] + more], -1)
            for s, more in zip(sums, moved, strict=True)
        ]
        step *= 2
    return sums


def _shifted(sums: list[Tensor], d: Tensor) -> list[Tensor]:
    """The moments of the same sources seen from a place that is further away by d."""
    decay = torch.exp(-d)
    return [
        decay * sum(math.comb(k, i) * d ** (k - i) * sums[i] for i in range(k + 1))
        for k in range(len(sums))
    ]


def _prefix(w: Tensor) -> Tensor:
    """Σ_{i < j} w_i for j = 0..m."""
    return torch.nn.functional.pad(w.cumsum(-1), (1, 0))


def _invert_laplace(
    sources: Tensor, levels: Tensor, temperature: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """Between two sources FSum is i - L e^-s/2 + R e^-s'/2, with s + s' the gap: a quadratic.

    s = (t - x_i)/τ and s' = (x_{i+1} - t)/τ; L and R sum what is on either side, seen from its
    nearest source. The root is given by its distance from the nearer one, so that the gap may be
    as wide as it likes.
    """
    problem = Problem.of(sources, levels, None, None, temperature, counts.squeeze(-1), None)
    x, w, tau, m = problem.x, problem.w, problem.tau, sources.shape[-1]
    (left,), (right,) = _scan(x, w, tau, 0), _scan(x, w, tau, 0, backward=True)
    at_sources = _prefix(w)[..., 1:] + 0.5 * ((right - w) - left)
    at_sources = torch.where(_places(x) < counts, at_sources, math.inf)
    at_sources = at_sources.cummax(-1).values
    i = torch.searchsorted(at_sources, levels.contiguous(), right=True)  # sources below t
    below, above = (
        (i - 1).clamp(min=0),
        torch.minimum(i, (counts - 1).clamp(min=0)).clamp(max=m - 1),
    )
    L = torch.where(i > 0, left.gather(-1, below), 0.0)
    R = torch.where(i < counts, right.gather(-1, above), 0.0)
    gap = (x.gather(-1, above) - x.gather(-1, below)) / tau
    excess = levels - i
    both = torch.sqrt(excess**2 + L * R * torch.exp(-gap))
    ahead = torch.log(L) - torch.log(both - excess)  # s, for excess < 0
    behind = torch.log(R) - torch.log(both + excess)  # s', for excess > 0
    middle = 0.5 * (gap + torch.log(L) - torch.log(R))
    s = torch.where(excess == 0, middle, torch.where(excess < 0, ahead, gap - behind))
    inner = (i > 0) & (i < counts)
    s = torch.where(inner, torch.minimum(s.clamp(min=0), gap), s)
    behind = torch.where(excess > 0, behind, gap - s)
    behind = torch.where(inner, torch.minimum(behind.clamp(min=0), gap), behind)
    from_above = (i == 0) | ((i < counts) & (s > behind))
    centre = x.gather(-1, torch.where(from_above, above, below))
    return centre, torch.where(from_above, -behind, s) * tau


# ---- uniform ------------------------------------------------------------------------------------


def _uniform(problem: Problem, derivative: int, moment: int) -> Tensor:
    if derivative > 1:
        return torch.zeros_like(problem.t)
    half = 0.5 * problem.tau
    done = _found(problem, right=True, shift=-half)  # u >= 1/2
    begun = torch.maximum(_found(problem, right=False, shift=half), done)  # u > -1/2
    sums, reference = _window_sums(problem, done, begun, max(moment, 1 - derivative))
    s = problem.offsets(reference)
    total = _moment(sums, s, moment) if derivative else _moment(sums, s, 1) + 0.5 * sums[0]
    inside = torch.where(begun > done, total, 0.0)
    return inside if derivative else inside + _prefix(problem.w).gather(-1, done)


def _moment(sums: list[Tensor], s: Tensor, k: int) -> Tensor:
    """Σ w (s - v)^k from the sums of w v^i."""
    terms = (math.comb(k, i) * (-1) ** i * s ** (k - i) * sums[i] for i in range(k + 1))
    return torch.stack(list(terms)).sum(0)


def _window_sums(
    problem: Problem, begin: Tensor, end: Tensor, moment: int
) -> tuple[list[Tensor], Tensor]:
    """Σ w v^k over sources [begin, end), v = (x_i - x_r)/τ, k = 0..moment; and r, in the window.

    No difference of prefix sums, which would cancel: a window is cut at the roundest place p
    inside it, and added up from there to both sides. One turn serves all windows of one p's kind.
    """
    m = problem.x.shape[-1]
    size = 1 << m.bit_length()
    last = problem.x[..., -1:].expand(*problem.x.shape[:-1], size - m)
    x = torch.cat([problem.x, last], -1)
    w = torch.nn.functional.pad(problem.w, (0, size - m))
    sums = [torch.zeros_like(problem.t) for _ in range(moment + 1)]
    reference = torch.zeros_like(begin)
    different = begin ^ end
    width = size // 2
    while width > 0:
        here = (different >= width) & (different < 2 * width) & (begin < end)
        if bool(here.any()):
            cut = end & -width
            outward = _outward_sums(x, w, problem.tau, width, moment)
            after = here & (end > cut)
            for k, table in enumerate(outward):
                part = torch.where(here, table.gather(-1, begin.clamp(max=size - 1)), 0.0)
                part += torch.where(after, table.gather(-1, (end - 1).clamp(min=0)), 0.0)
                sums[k] += part
            reference = torch.where(here, cut - 1, reference)
        width //= 2
    return sums, reference


def _outward_sums(x: Tensor, w: Tensor, tau: Tensor, width: int, moment: int) -> list[Tensor]:
    """In blocks of two times `width`: Σ w v^k from the middle of the block to every place in it."""
    blocks = x.unflatten(-1, (-1, 2, width))
    v = (blocks - blocks[..., :1, -1:]) / tau[..., None, None]
    weights = w.unflatten(-1, (-1, 2, width))
    tables = []
    for k in range(moment + 1):
        terms = weights * v**k
        left = terms[..., :1, :].flip(-1).cumsum(-1).flip(-1)
        tables.append(torch.cat([left, terms[..., 1:, :].cumsum(-1)], -2).flatten(-3))
    return tables


def _invert_uniform(
    sources: Tensor, levels: Tensor, temperature: Tensor, counts: Tensor
) -> tuple[Tensor, Tensor]:
    """FSum is linear between the places x_i ± τ/2: find the sources that are done and begun."""
    problem = Problem.of(sources, sources, None, None, temperature, counts.squeeze(-1), None)
    half = (0.5 * problem.tau).expand(problem.x.shape)
    present = _places(problem.x) < counts
    done, begun = (
        torch.searchsorted(
            _ascending(_uniform(replace(problem, t=problem.x, rest=side), 0, 0), present),
            levels.contiguous(),
            right=right,
        )
        for side, right in ((half, True), (-half, False))
    )
    begun = torch.maximum(begun, done)
    m = sources.shape[-1]
    sums, reference = _window_sums(replace(problem, t=levels), done, begun, 1)
    inside = begun - done
    place = torch.where(inside > 0, reference, (done - 1).clamp(0, m - 1))
    centre = problem.x.gather(-1, place)
    share = torch.where(inside > 0, inside, 1)
    along = ((levels - done) - 0.5 * inside + sums[1]) / share
    next_source = problem.x.gather(-1, done.clamp(max=m - 1))
    rest = torch.where(inside > 0, along * problem.tau, 0.5 * (next_source - centre))
    return centre, rest


def _ascending(values: Tensor, present: Tensor) -> Tensor:
    return torch.where(present, values, math.inf).cummax(-1).values


# ---- the others, in tiles -----------------------------------------------------------------------


def _tiled(problem: Problem, density: Density, derivative: int, moment: int) -> Tensor:
    rows = problem.x.shape[:-1]
    m, n = problem.x.shape[-1], problem.t.shape[-1]
    law = derivative_of(density, derivative)
    x, w = (v.reshape(-1, 1, m) for v in (problem.x, problem.w))
    t = problem.t.reshape(-1, n, 1)
    rest = None if problem.rest is None else problem.rest.reshape(-1, n, 1)
    tau = problem.tau.reshape(-1, 1, 1)
    total = problem.t.new_zeros(len(x), n)
    wide = min(m, 1024)
    high = max(1, min(n, _TILE // wide))
    deep = max(1, _TILE // (wide * high))
    for r in range(0, len(x), deep):
        for j in range(0, n, high):
            row, column = slice(r, r + deep), slice(j, j + high)
            for i in range(0, m, wide):
                u = t[row, column] - x[row, :, i : i + wide]
                u = (u if rest is None else u + rest[row, column]) / tau[row]
                values = law(u) if moment == 0 else law(u) * _power(u, moment)
                total[row, column] += (values * w[row, :, i : i + wide]).sum(-1)
    return total.reshape(*rows, n)


def _power(u: Tensor, moment: int) -> Tensor:
    most = torch.finfo(u.dtype).max ** (1 / 4)
    return u.clamp(-most, most) ** moment  # there F^(a) is 0, or too small to matter


def derivative_of(density: Density, order: int) -> Callable[[Tensor], Tensor]:
    """F, f, f' or f'' as a function of u."""

    def slope(u: Tensor) -> Tensor:
        told = density.slope(u)
        return _by_autograd(density.pdf, u) if told is None else told

    laws: tuple[Callable[[Tensor], Tensor], ...] = (density.cdf, density.pdf, slope)
    return laws[order] if order < len(laws) else lambda u: _by_autograd(slope, u)


def _by_autograd(function: Callable[[Tensor], Tensor], u: Tensor) -> Tensor:
    with torch.enable_grad():
        at = u.detach().clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(at).sum(), at)
    return gradient


def _invert_by_thresholds(
    sources: Tensor, levels: Tensor, temperature: Tensor, counts: Tensor, density: Density
) -> tuple[Tensor, Tensor]:
    """FSum(t) = c is the equation of a soft top-k with k = n - c: one problem per level."""
    rows, m, n = sources.shape[:-1], sources.shape[-1], levels.shape[-1]
    x = torch.where(_places(sources) < counts, sources, -math.inf).unsqueeze(-2)
    tau = temperature.expand(rows).unsqueeze(-1)
    k = (counts - levels).clamp(min=0)
    step = max(1, _TILE // max(1, sources.numel()))
    found = [
        solve(x.expand(*rows, min(step, n - j), m), k[..., j : j + step], tau, density)
        for j in range(0, n, step)
    ]
    centre, rest = (torch.cat([part[place] for part in found], -1) for place in (0, 1))
    return centre, rest
