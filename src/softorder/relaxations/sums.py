"""F-sums with derivatives of every kind, on top of kernels without any.

Everything is a call of one sum, which is closed under differentiation (kernels/fsum): with
G(u) = u^m F^(a)(u) and u = (t_j - x_i)/τ,

    S_j = Σ_i w_i G(u)     ∂S_j/∂t_j = Σ_i w_i G'(u)/τ     ∂S_j/∂x_i = -w_i G'(u)/τ
                           ∂S_j/∂τ = -Σ_i w_i u G'(u)/τ     ∂S_j/∂w_i = G(u)

and G' is a sum of two more such G. A vector-Jacobian product in x is a sum with the roles of
sources and targets exchanged. So the derivative of a sum is made of sums, which have derivatives.

torch.compile and torch.export meet the same formulas as the autograd rules of the operators;
everything else meets them as an autograd.Function, which has forward mode and vmap too.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels import fsum as _operators  # noqa: F401, defines the operators
from softorder.kernels._density_numbers import number_of
from softorder.kernels.formulas import beside, inverse

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
) -> Tensor:
    """`kernels.fsum.fsum`, differentiable in sources, targets, weights and temperature."""
    temperature = beside(temperature, sources).expand(sources.shape[:-1])
    pair = sources, None, targets, None
    return any_sum(*pair, weights, temperature, *counts, density, derivative, moment)


def any_sum(*arguments: Any) -> Tensor:
    """The operator `fsum` with its own arguments, differentiable in whatever way torch asks for."""
    *tensors, density, derivative, moment = arguments
    if isinstance(density, int):
        return torch.ops.softorder.fsum(*arguments)
    if torch.compiler.is_compiling():
        return torch.ops.softorder.fsum(*tensors, number_of(density), derivative, moment)
    return _FSum.apply(*arguments)


class _Sums:
    """The sums that the derivatives of one sum are made of."""

    def __init__(self, ctx: Any, tensors: tuple[Any, ...]) -> None:
        self.sources, self.targets, self.counts = tensors[:2], tensors[2:4], tensors[6:]
        self.x, self.t, self.w, self.temperature = tensors[0], tensors[2], *tensors[4:6]
        self.density, self.derivative, self.moment = ctx.statics
        self.scale = inverse(self.temperature, self.x.dtype)

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
        common = *self.sources, *self.targets, weights, self.temperature, *self.counts
        return _total([f * any_sum(*common, self.density, a, m) for f, a, m in terms])

    def at_sources(self, terms: list[tuple[int, int, int]], weights: Tensor) -> Tensor:
        """Σ_j v_j G(u) for every source: the sum for -u, by the parity of G."""
        common = *self.targets, *self.sources, weights, self.temperature, *self.counts[::-1]
        return _total(
            [f * _parity(a, m) * any_sum(*common, self.density, a, m) for f, a, m in terms]
        )

    def by_weights(self, upstream: Tensor) -> Tensor:
        """Σ_j v_j G(u) for every source, where G may be F itself: F(u) = 1 - F(-u)."""
        turned = self.at_sources([(1, self.derivative, self.moment)], upstream)
        if self.derivative > 0:
            return turned
        sources, targets = self.counts
        total = within(upstream, targets).sum(-1, keepdim=True)
        return within(total - turned, sources)

    def weighted(self, value: Tensor) -> Tensor:
        return value if self.w is None else self.w * value


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


def _sum_vjp(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    sums = _Sums(ctx, ctx.saved_tensors)
    by_source, _, by_target, _, by_weight, by_temperature = ctx.needs_input_grad[:6]
    grads: list[Tensor | None] = [None] * 11
    if by_source:
        grads[0] = -sums.scale * sums.weighted(sums.at_sources(sums.slope(), upstream))
    if by_target:
        # in the order in which sources have it, so that what a score does to itself is exactly 0
        grads[2] = sums.scale * (upstream * sums.at_targets(sums.slope(), sums.w))
    if by_weight:
        grads[4] = sums.by_weights(upstream)
    if by_temperature:
        heat = sums.scale * upstream * sums.at_targets(sums.heat(), sums.w)
        grads[5] = -heat.double().sum(-1)
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
        sums = _Sums(ctx, ctx.saved_tensors)
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
