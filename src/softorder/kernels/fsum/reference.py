"""F-sums and their roots in plain torch, for every device and every density."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from softorder.densities import BUILT_IN, Density
from softorder.kernels._autograd import by_autograd
from softorder.kernels._density_numbers import density_of
from softorder.kernels.formulas import factor_for, multiplied
from softorder.kernels.fsum import laplace, uniform
from softorder.kernels.fsum.problem import Problem, Split, places
from softorder.kernels.threshold import solve

_TILE = 1 << 20  # scalars in a tile of the O(m·n) sum
_LINEAR = {BUILT_IN["laplace"]: laplace, BUILT_IN["uniform"]: uniform}


def fsum(
    sources: Tensor,
    source_rest: Tensor | None,
    targets: Tensor,
    target_rest: Tensor | None,
    weights: Tensor | None,
    temperature: Tensor,
    source_count: Tensor | None,
    target_count: Tensor | None,
    density: int,
    derivative: int,
    moment: int,
) -> Tensor:
    """Σ_i w_i u^moment F^(derivative)(u) for every target, summed in float64."""
    if sources.shape[-1] == 0 or targets.numel() == 0:
        return torch.zeros_like(targets)
    problem = Problem.of(
        Split.of(sources, source_rest),
        Split.of(targets, target_rest),
        weights,
        temperature,
        source_count,
        target_count,
    )
    law = density_of(density)
    if law in _LINEAR:
        total = _LINEAR[law].fsum(problem, derivative, moment)
    else:
        total = _tiled(problem, law, derivative, moment)
    return problem.finish(total).to(sources.dtype)


def invert(
    sources: Tensor, levels: Tensor, temperature: Tensor, count: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """centre and rest of the root of every level."""
    x, law = Split.of(sources), density_of(density)
    problem = Problem.of(x, x, None, temperature, count, None)
    if sources.shape[-1] == 0 or levels.numel() == 0:
        centre = rest = levels
    elif (factor := factor_for(_most(problem))) is None:
        centre, rest = _roots(problem, sources, levels, temperature, law)
    else:
        sources, temperature = factor * sources, multiplied(temperature, factor)
        x = Split.of(sources)
        problem = Problem.of(x, x, None, temperature, count, None)
        found = _roots(problem, sources, levels, temperature, law)
        centre, rest = (value.double() / factor for value in found)
    low, high = levels <= 0, levels >= problem.sources
    centre = torch.where(low, -math.inf, torch.where(high, math.inf, centre))
    return centre.to(sources.dtype), torch.where(low | high, 0.0, rest).to(sources.dtype)


def _most(problem: Problem) -> Tensor:
    """The largest |x| of every row: at one of its ends."""
    return problem.x.value[..., [0, -1]].abs().amax(-1, keepdim=True)


def _roots(
    problem: Problem, sources: Tensor, levels: Tensor, temperature: Tensor, law: Density
) -> tuple[Tensor, Tensor]:
    if law in _LINEAR:
        return _LINEAR[law].invert(problem, levels)
    return _invert_by_thresholds(sources, levels, temperature, problem.sources, law)


# ---- densities without a linear algorithm -------------------------------------------------------


def _tiled(problem: Problem, density: Density, derivative: int, moment: int) -> Tensor:
    rows, n = problem.t.value.shape[:-1], problem.t.size
    law = derivative_of(density, derivative)
    x = problem.x.map(lambda v: v.reshape(-1, 1, v.shape[-1]))
    t = problem.t.map(lambda v: v.reshape(-1, n, 1))
    w, tau = problem.w.reshape(x.value.shape), problem.tau.reshape(-1, 1, 1)
    total = w.new_zeros(len(w), n)
    for row, column, source in _tiles(len(w), n, x.size):
        u = t[row, column].minus(x[row, :, source]) / tau[row]
        values = law(u) if moment == 0 else law(u) * _power(u, moment)
        total[row, column] += (values * w[row, :, source]).sum(-1)
    return total.reshape(*rows, n)


def _tiles(rows: int, n: int, m: int) -> list[tuple[slice, slice, slice]]:
    wide = min(m, 1024)
    high = max(1, min(n, _TILE // wide))
    deep = max(1, _TILE // (wide * high))
    return [
        (slice(r, r + deep), slice(j, j + high), slice(i, i + wide))
        for r in range(0, rows, deep)
        for j in range(0, n, high)
        for i in range(0, m, wide)
    ]


def _power(u: Tensor, moment: int) -> Tensor:
    most = torch.finfo(u.dtype).max ** 0.25
    return u.clamp(-most, most) ** moment  # further out F^(a) is 0, or too small to matter


def derivative_of(density: Density, order: int) -> Callable[[Tensor], Tensor]:
    """F, f, f' or f'' as a function of u."""

    def slope(u: Tensor) -> Tensor:
        told = density.slope(u)
        return by_autograd(density.pdf, u) if told is None else told

    laws: tuple[Callable[[Tensor], Tensor], ...] = (density.cdf, density.pdf, slope)
    return laws[order] if order < len(laws) else lambda u: by_autograd(slope, u)


def _invert_by_thresholds(
    sources: Tensor, levels: Tensor, temperature: Tensor, count: Tensor, density: Density
) -> tuple[Tensor, Tensor]:
    """FSum(t) = c is the equation of a soft top-k with k = count - c: one problem per level."""
    rows, m, n = sources.shape[:-1], sources.shape[-1], levels.shape[-1]
    x = torch.where(places(sources) < count, sources, -math.inf).unsqueeze(-2)
    tau = temperature.expand(rows).unsqueeze(-1)
    k = (count - levels).clamp(min=0)
    step = max(1, _TILE // sources.numel())
    found = [
        solve(x.expand(*rows, min(step, n - j), m), k[..., j : j + step], tau, density)
        for j in range(0, n, step)
    ]
    centre = torch.cat([roots.centre for roots in found], -1)
    rest = torch.cat([roots.rest for roots in found], -1)
    return centre, rest + density.anchored.middle * tau.to(rest.dtype)
