"""Entropic transport plans with derivatives, from thresholds without any.

With d_l = (gains_l - t_l)/ε, P_a ∝ exp Σ_{l<a} d_l and Q, U the mass below and above a threshold,
the derivatives of Σ_i Q_j = levels_j give dt (Xie et al. 2020, theorem 3, in other coordinates).
For upstream V, and H[V]_l = ∂<V, P>/∂d_l,

    H[V]_l = Q_l Σ_{a>l} P_a V_a - U_l Σ_{a≤l} P_a V_a
    ∂L/∂d = H[V] - J_i w    J w = Σ_i H[V]    J = Σ_i J_i    (J_i)_jl = Q_min(j,l) U_max(j,l).

That is their algorithm 4: O(n k) numbers, and nothing is unrolled. Where a threshold is cold w is
as large as J is small: only products of tails survive that.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import transport
from softorder.kernels._autograd import wanted
from softorder.kernels.transport.plans import FLAT, Setting, plan_of, steps_in
from softorder.kernels.transport.reference import Solution
from softorder.kernels.transport.steps import curvature, sides, solve_curvature


def transport_plan(
    gains: Tensor, temperature: Tensor, levels: Tensor, total: Tensor, solution: Solution
) -> Tensor:
    """P (..., anchors, n), differentiable in gains and temperature, twice."""
    setting = Setting(levels, total, solution.centre, solution.rest)
    if not _check.eager():
        return whole_plan(gains, temperature, setting)
    if torch.is_grad_enabled() and (gains.requires_grad or temperature.requires_grad):
        rows = gains.shape[:-2]
        return _Plan.apply(gains, temperature.expand(rows), *setting)
    return transport.plan(gains, temperature, *setting)


def whole_plan(gains: Tensor, temperature: Tensor, setting: Setting) -> Tensor:
    """The same with all derivatives, in plain torch."""
    return plan_of(*twice_differentiable(gains, temperature, setting))


def twice_differentiable(
    gains: Tensor, temperature: Tensor, setting: Setting
) -> tuple[Tensor, Tensor]:
    """The steps and the rest, to which two Newton steps of value 0 give derivatives.

    J may be a constant: after the first step the error is of second order in a change of the
    arguments, the second step multiplies it by one more order.
    """
    steps, rest = steps_in(gains, temperature, setting), setting.rest
    J = curvature(*sides(plan_of(steps, rest).detach()))
    for _ in range(2):
        below, above = sides(plan_of(steps, rest))
        total = torch.where(steps < 0, -above, below).sum(-1, keepdim=True)  # but for a constant
        step, _ = solve_curvature(J, total - total.detach(), FLAT)
        rest = rest - step.squeeze(-1)
    return steps, rest


class _Plan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gains: Tensor, temperature: Tensor, *setting: Tensor) -> Tensor:
        ctx.save_for_backward(gains, temperature, *setting)
        return transport.plan(gains, temperature, *setting)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gains, temperature, *setting = ctx.saved_tensors
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                plan = whole_plan(gains, temperature, Setting(*setting))
            grads = wanted(plan, (gains, temperature), ctx.needs_input_grad[:2], upstream)
        else:
            grads = transport.plan_vjp(upstream, gains, temperature, *setting)
        return (*grads, None, None, None, None)
