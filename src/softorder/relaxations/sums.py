"""F-sums with derivatives of every kind, on top of kernels without any.

Everything is a call of one sum, which is closed under differentiation (kernels/fsum): with
G(u) = u^m F^(a)(u) and u = (t_j - x_i)/τ,

    S_j = Σ_i w_i G(u)     ∂S_j/∂t_j = Σ_i w_i G'(u)/τ     ∂S_j/∂x_i = -w_i G'(u)/τ
                           ∂S_j/∂τ = -Σ_i w_i u G'(u)/τ     ∂S_j/∂w_i = G(u)

and G' is a sum of two more such G. A vector-Jacobian product in x is a sum with the roles of
sources and targets exchanged. So the derivative of a sum is made of sums, which have derivatives.

torch.compile and torch.export meet the same formulas as the autograd rules of the operators;
everything else meets them as an autograd.Function, which has forward mode and vmap too. Rows of
different lengths (kernels/ragged) have the autograd rules alone.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels import fsum as _operators  # noqa: F401, defines the operators
from softorder.kernels._density_numbers import number_of
from softorder.kernels.formulas import beside, inverse, reciprocal
from softorder.kernels.ragged import Segments

Law = Density | int  #: an object, or its number among the operators


def fsum(
    sources: Tensor,
    targets: Tensor,
    weights: Tensor | None,
    temperature: Tensor,
    density: Law,
    *,
    derivative: int = 0,
    moment: int = 0,
    counts: tuple[Tensor | None, Tensor | None] = (None, None),
    offsets: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """`kernels.fsum.fsum`, differentiable in sources, targets, weights and temperature.

    With offsets, those of the sources and of the targets, rows lie one behind another.
    """
    pair = sources, None, targets, None
    if offsets is not None:
        temperature = beside(temperature, sources).expand(offsets[0].shape[0] - 1)
        given = *pair, weights, temperature, *counts, *offsets, as_number(density)
        return torch.ops.softorder.ragged_fsum(*given, derivative, moment)
    temperature = beside(temperature, sources).expand(sources.shape[:-1])
    return any_sum(*pair, weights, temperature, *counts, density, derivative, moment)


def as_number(density: Law) -> int:
    return density if isinstance(density, int) else number_of(density)


def any_sum(*arguments: Any) -> Tensor:
    """The operator `fsum` with its own arguments, differentiable in whatever way torch asks for."""
    *tensors, density, derivative, moment = arguments
    if isinstance(density, int):
        return torch.ops.softorder.fsum(*arguments)
    if torch.compiler.is_compiling():
        return torch.ops.softorder.fsum(*tensors, number_of(density), derivative, moment)
    return _FSum.apply(*arguments)


class Sums:
    """The sums that the derivatives of one sum are made of."""

    def __init__(self, tensors: tuple[Any, ...], statics: tuple[Law, int, int]) -> None:
        self.sources, self.targets, self.counts = tensors[:2], tensors[2:4], tensors[6:8]
        self.x, self.t, self.w, self.temperature = tensors[0], tensors[2], *tensors[4:6]
        self.density, self.derivative, self.moment = statics
        self.scale = self.source_scale = inverse(self.temperature, self.x.dtype)

    def slope(self) -> list[tuple[int, int, int]]:
        """G' as terms (factor, derivative, moment)."""
        raised = (1, self.derivative + 1, self.moment)
        if self.moment == 0:
            return [raised]
        return [raised, (self.moment, self.derivative, self.moment - 1)]

    def heat(self) -> list[tuple[int, int, int]]:
        """u G' likewise."""
        raised = (1, self.derivative + 1, self.moment + 1)
        return [raised, (self.moment, self.derivative, self.moment)] if self.moment else [raised]

    def at_targets(self, terms: list[tuple[int, int, int]], weights: Tensor | None) -> Tensor:
        """Σ_i w_i G(u) for every target."""
        return _total([f * self.sum(weights, a, m) for f, a, m in terms])

    def at_sources(self, terms: list[tuple[int, int, int]], weights: Tensor) -> Tensor:
        """Σ_j v_j G(u) for every source: the sum for -u, by the parity of G."""
        return _total(
            [f * _parity(a, m) * self.sum(weights, a, m, turned=True) for f, a, m in terms]
        )

    def sum(self, weights: Tensor | None, a: int, m: int, turned: bool = False) -> Tensor:
        """One sum at the targets; turned, one of the targets at the sources."""
        pair, counts = (self.sources, self.targets), self.counts
        if turned:
            pair, counts = pair[::-1], counts[::-1]
        return any_sum(*pair[0], *pair[1], weights, self.temperature, *counts, self.density, a, m)

    def by_weights(self, upstream: Tensor) -> Tensor:
        """Σ_j v_j G(u) for every source, where G may be F itself: F(u) = 1 - F(-u)."""
        turned = self.at_sources([(1, self.derivative, self.moment)], upstream)
        if self.derivative > 0:
            return turned
        return self.counted(self.total(upstream) - turned)

    def total(self, values: Tensor) -> Tensor:
        """Σ_j of the targets of a row, beside its sources."""
        return within(values, self.counts[1]).sum(-1, keepdim=True)

    def counted(self, values: Tensor) -> Tensor:
        """0 for sources that do not count."""
        return within(values, self.counts[0])

    def per_row(self, values: Tensor) -> Tensor:
        """Σ_j of the targets of every row."""
        return values.double().sum(-1)

    def weighted(self, value: Tensor) -> Tensor:
        return value if self.w is None else self.w * value


class SumsOfSegments(Sums):
    """The same of rows one behind another."""

    def __init__(self, tensors: tuple[Any, ...], statics: tuple[Law, int, int]) -> None:
        super().__init__(tensors, statics)
        self.offsets, scale = tensors[8:10], reciprocal(self.temperature, self.x.dtype)
        at = Segments(self.offsets[0], self.x.shape[0])
        self.at = at, at
        if self.offsets[0] is not self.offsets[1]:
            self.at = at, Segments(self.offsets[1], self.t.shape[0])
        self.source_scale, self.scale = (segments.spread(scale) for segments in self.at)

    def sum(self, weights: Tensor | None, a: int, m: int, turned: bool = False) -> Tensor:
        pair, counts, offsets = (self.sources, self.targets), self.counts, self.offsets
        if turned:
            pair, counts, offsets = pair[::-1], counts[::-1], offsets[::-1]
        given = *pair[0], *pair[1], weights, self.temperature, *counts, *offsets
        return torch.ops.softorder.ragged_fsum(*given, self.density, a, m)

    def total(self, values: Tensor) -> Tensor:
        own = self.at[1].add_up(self.at[1].within(values, self.counts[1]))
        return self.at[0].spread(own).to(values.dtype)

    def counted(self, values: Tensor) -> Tensor:
        return self.at[0].within(values, self.counts[0])

    def per_row(self, values: Tensor) -> Tensor:
        return self.at[1].add_up(values)


def within(values: Tensor, count: Tensor | None) -> Tensor:
    """Values that count, and 0 behind them."""
    if count is None:
        return values
    place = torch.arange(values.shape[-1], device=values.device)
    return torch.where(place < count.unsqueeze(-1), values, 0.0)


def _parity(derivative: int, moment: int) -> int:
    """That of G, if it has one; without a derivative, of F."""
    return -1 if derivative and (derivative - 1 + moment) % 2 else 1


def _total(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


def _remember_sum(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, density, derivative, moment = inputs
    ctx.save_for_backward(*tensors)
    ctx.statics = density, derivative, moment


def _sum_vjp(ctx: Any, upstream: Tensor, kind: type[Sums] = Sums) -> tuple[Tensor | None, ...]:
    sums = kind(ctx.saved_tensors, ctx.statics)
    by_source, _, by_target, _, by_weight, by_temperature = ctx.needs_input_grad[:6]
    grads: list[Tensor | None] = [None] * len(ctx.needs_input_grad)
    if by_source:
        grads[0] = -sums.source_scale * sums.weighted(sums.at_sources(sums.slope(), upstream))
    if by_target:
        # in the order in which sources have it, so that what a score does to itself is exactly 0
        grads[2] = sums.scale * (upstream * sums.at_targets(sums.slope(), sums.w))
    if by_weight:
        grads[4] = sums.by_weights(upstream)
    if by_temperature:
        grads[5] = -sums.per_row(sums.scale * upstream * sums.at_targets(sums.heat(), sums.w))
    return tuple(grads)


class _FSum(torch.autograd.Function):
    generate_vmap_rule = True
    backward = staticmethod(_sum_vjp)

    @staticmethod
    def forward(*arguments: Any) -> Tensor:
        *tensors, density, derivative, moment = arguments
        return torch.ops.softorder.fsum(*tensors, number_of(density), derivative, moment)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _remember_sum(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:8])

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> Tensor:
        sums = Sums(ctx.saved_tensors, ctx.statics)
        by_source, _, by_target, _, by_weight, by_temperature = tangents[:6]
        total = torch.zeros_like(sums.t)
        if by_target is not None:
            total = total + sums.scale * by_target * sums.at_targets(sums.slope(), sums.w)
        if by_source is not None:
            moved = sums.at_targets(sums.slope(), sums.weighted(by_source))
            total = total - sums.scale * moved
        if by_weight is not None:
            own = [(1, sums.derivative, sums.moment)]
            total = total + sums.at_targets(own, by_weight)
        if by_temperature is not None:
            pace = (by_temperature.unsqueeze(-1) * sums.scale).to(sums.t.dtype)
            total = total - pace * sums.at_targets(sums.heat(), sums.w)
        return total


torch.library.register_autograd("softorder::fsum", _sum_vjp, setup_context=_remember_sum)
torch.library.register_autograd(
    "softorder::ragged_fsum",
    partial(_sum_vjp, kind=SumsOfSegments),
    setup_context=_remember_sum,
)
