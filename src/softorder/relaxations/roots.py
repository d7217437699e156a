"""Roots of F-sums, FSum(t) = level, with derivatives of every kind.

Differentiated implicitly, with u = (t_j - x_i)/τ,

    Σ_i f(u) (dt_j - dx_i - u dτ)/τ = dlevel_j,

which is made of sums again: relaxations/sums.py differentiates them once more.
"""

from __future__ import annotations

from functools import cached_property, partial
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels._density_numbers import number_of
from softorder.kernels.formulas import beside, reciprocal
from softorder.kernels.ragged import Segments
from softorder.relaxations.sums import Law, any_sum, as_number


def roots(
    sources: Tensor,
    levels: Tensor,
    temperature: Tensor,
    density: Law,
    count: Tensor | None = None,
    offsets: tuple[Tensor, Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """t = centre + rest with FSum(t_j) = level_j; the derivatives of t are those of the centre.

    Where the slope of FSum underflows they are 0. With offsets, those of the sources and of the
    levels, rows lie one behind another.
    """
    if offsets is not None:
        temperature = beside(temperature, sources).expand(offsets[0].shape[0] - 1)
        given = sources, levels, temperature, count, *offsets, as_number(density)
        return torch.ops.softorder.ragged_fsum_invert(*given)
    rows = sources.shape[:-1]
    levels = levels.expand(*rows, levels.shape[-1])
    temperature = beside(temperature, sources).expand(rows)
    if torch.compiler.is_compiling():
        number = as_number(density)
        return torch.ops.softorder.fsum_invert(sources, levels, temperature, count, number)
    return _Roots.apply(sources, levels, temperature, count, density)


class _Implicit:
    """FSum(t) = level, differentiated: Σ_i f(u)(dt - dx_i - u dτ)/τ = dlevel."""

    def __init__(self, tensors: tuple[Any, ...], density: Law) -> None:
        self.x, self.temperature, self.count, *self.offsets, self.centre, self.rest = tensors
        self.density = density
        self.scale = self.beside_roots(reciprocal(self.temperature, self.x.dtype))
        self.rooted = self.centre.isfinite()
        self.t, self.rest = self.all_finite()

    def sum(self, weights: Tensor | None, moment: int, turned: bool = False) -> Tensor:
        """One sum of sources at the roots; turned, one of roots at the sources."""
        pair, counts = (self.x, None, self.t, self.rest), (self.count, None)
        if turned:
            pair, counts = pair[2:] + pair[:2], counts[::-1]
        return any_sum(*pair, weights, self.temperature, *counts, self.density, 1, moment)

    def beside_roots(self, numbers: Tensor) -> Tensor:
        return numbers.unsqueeze(-1)

    def all_finite(self) -> tuple[Tensor, Tensor]:
        return all_finite(self.centre, self.rest)

    def per_row(self, values: Tensor) -> Tensor:
        return values.double().sum(-1)

    def at_roots(self, weights: Tensor | None, moment: int = 0) -> Tensor:
        """Σ_i w_i u^moment f(u) for every root."""
        return self.sum(weights, moment)

    def at_sources(self, weights: Tensor) -> Tensor:
        """Σ_j v_j f(u) for every source; f is even."""
        return self.sum(weights, 0, turned=True)

    def per_slope(self, value: Tensor) -> Tensor:
        """value / Σ_i f(u), and 0 where there is no root or no slope."""
        slope = self.at_roots(None)
        flat = (slope.detach() < torch.finfo(slope.dtype).tiny) | ~self.rooted
        slope = torch.where(flat, 1.0, slope)
        if _check.eager() and not slope.requires_grad:
            return torch.where(flat, 0.0, value / slope)
        return torch.where(flat, 0.0, value * _reciprocal(slope))


class _ImplicitSegments(_Implicit):
    """The same of rows one behind another."""

    @cached_property
    def roots(self) -> Segments:
        return Segments(self.offsets[1], self.centre.shape[0])

    def sum(self, weights: Tensor | None, moment: int, turned: bool = False) -> Tensor:
        pair, counts, offsets = (self.x, None, self.t, self.rest), (self.count, None), self.offsets
        if turned:
            pair, counts, offsets = pair[2:] + pair[:2], counts[::-1], offsets[::-1]
        given = *pair, weights, self.temperature, *counts, *offsets
        return torch.ops.softorder.ragged_fsum(*given, self.density, 1, moment)

    def beside_roots(self, numbers: Tensor) -> Tensor:
        return self.roots.spread(numbers)

    def all_finite(self) -> tuple[Tensor, Tensor]:
        """Infinite roots join their neighbours: the first of a row and the last are infinite."""
        at, centre = self.roots, self.centre.detach()
        first, above = (at.spread(at.add_up(centre == end).long()) for end in _ENDS)
        last = at.spread(at.offsets.diff()) - 1 - above
        place = torch.minimum(torch.maximum(at.place, first), last).clamp(min=0)
        moved = centre.gather(-1, at.begin + place)
        moved = torch.where(moved.isfinite(), moved, 0.0)  # there are only infinite ones
        t = torch.where(centre.isfinite(), self.centre, moved)
        return t, self.rest.gather(-1, at.begin + place)

    def per_row(self, values: Tensor) -> Tensor:
        return self.roots.add_up(values)


_ENDS = -torch.inf, torch.inf


def _reciprocal(slope: Tensor) -> Tensor:
    """1/slope, differentiated as e^-log slope: in a wide gap the square of a slope underflows."""
    log = torch.log(slope)
    return (1 / slope).detach() * torch.exp(log.detach() - log)


def all_finite(centre: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
    """Ascending roots as the sums want them: the infinite ones join their neighbours."""
    n = centre.shape[-1]
    first = (centre == -torch.inf).sum(-1, keepdim=True)
    last = n - 1 - (centre == torch.inf).sum(-1, keepdim=True)
    place = torch.arange(n, device=first.device)
    place = torch.minimum(torch.maximum(place, first), last).clamp(0, n - 1)
    moved = centre.detach().gather(-1, place)
    moved = torch.where(moved.isfinite(), moved, 0.0)  # there are only infinite ones
    return torch.where(centre.isfinite(), centre, moved), rest.gather(-1, place)


def _remember_roots(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    sources, _, *others, density = inputs
    ctx.density = density
    ctx.save_for_backward(sources, *others, *output)


def _roots_vjp(
    ctx: Any, upstream: Tensor, _: Tensor, kind: type[_Implicit] = _Implicit
) -> tuple[Tensor | None, ...]:
    implicit = kind(ctx.saved_tensors, ctx.density)
    by_source, by_level, by_temperature = ctx.needs_input_grad[:3]
    grads: list[Tensor | None] = [None] * len(ctx.needs_input_grad)
    share = implicit.per_slope(upstream)
    if by_source:
        grads[0] = implicit.at_sources(share)
    if by_level:
        grads[1] = (share / implicit.scale).double()
    if by_temperature:
        grads[2] = implicit.per_row(share * implicit.at_roots(None, moment=1))
    return tuple(grads)


class _Roots(torch.autograd.Function):
    generate_vmap_rule = True
    backward = staticmethod(_roots_vjp)

    @staticmethod
    def forward(
        sources: Tensor,
        levels: Tensor,
        temperature: Tensor,
        count: Tensor | None,
        density: Density,
    ) -> tuple[Tensor, Tensor]:
        number = number_of(density)
        return torch.ops.softorder.fsum_invert(sources, levels, temperature, count, number)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _remember_roots(ctx, inputs, output)
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_forward(*ctx.to_save)

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, None]:
        implicit = _Implicit(ctx.saved_tensors, ctx.density)
        by_source, by_level, by_temperature = tangents[:3]
        total = torch.zeros_like(implicit.centre)
        if by_source is not None:
            total = total + implicit.at_roots(by_source)
        if by_temperature is not None:
            heat = implicit.at_roots(None, moment=1)
            total = total + by_temperature.unsqueeze(-1).to(heat.dtype) * heat
        if by_level is not None:
            total = total + by_level.to(total.dtype) / implicit.scale
        return implicit.per_slope(total), None


torch.library.register_autograd("softorder::fsum_invert", _roots_vjp, setup_context=_remember_roots)
torch.library.register_autograd(
    "softorder::ragged_fsum_invert",
    partial(_roots_vjp, kind=_ImplicitSegments),
    setup_context=_remember_roots,
)
