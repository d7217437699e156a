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

from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels._autograd import wanted
from softorder.kernels.transport import long_rows
from softorder.kernels.transport.reference import Solution
from softorder.kernels.transport.steps import (
    curvature,
    logits,
    scale_of,
    sides,
    solve_curvature,
    steps_of,
)

_FLAT = torch.finfo(torch.float64).tiny  # J where a threshold moves nothing that could be shown


class Setting(NamedTuple):
    """The constants of a plan."""

    levels: Tensor
    total: Tensor
    centre: Tensor
    rest: Tensor


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
    return _plan(steps_in(gains, temperature, setting), setting.rest)


def whole_plan(gains: Tensor, temperature: Tensor, setting: Setting) -> Tensor:
    """The same with all derivatives, in plain torch."""
    return _plan(*twice_differentiable(gains, temperature, setting))


def steps_in(gains: Tensor, temperature: Tensor, setting: Setting) -> Tensor:
    levels, total, centre, _ = setting
    return steps_of(gains, levels, total, centre, scale_of(temperature))


def _plan(steps: Tensor, rest: Tensor) -> Tensor:
    return torch.softmax(logits(steps - rest.unsqueeze(-1)), -2)


def twice_differentiable(
    gains: Tensor, temperature: Tensor, setting: Setting
) -> tuple[Tensor, Tensor]:
    """The steps and the rest, to which two Newton steps of value 0 give derivatives.

    J may be a constant: after the first step the error is of second order in a change of the
    arguments, the second step multiplies it by one more order.
    """
    steps, rest = steps_in(gains, temperature, setting), setting.rest
    J = curvature(*sides(_plan(steps, rest).detach()))
    for _ in range(2):
        below, above = sides(_plan(steps, rest))
        total = torch.where(steps < 0, -above, below).sum(-1, keepdim=True)  # but for a constant
        step, _ = solve_curvature(J, total - total.detach(), _FLAT)
        rest = rest - step.squeeze(-1)
    return steps, rest


class _Plan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gains: Tensor, temperature: Tensor, *setting: Tensor) -> Tensor:
        constants = Setting(*setting)
        plan = _plan(steps_in(gains, temperature, constants), constants.rest)
        ctx.save_for_backward(gains, temperature, plan, *setting)
        return plan

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gains, temperature, plan, *setting = ctx.saved_tensors
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                plan = whole_plan(gains, temperature, Setting(*setting))
            grads = wanted(plan, (gains, temperature), ctx.needs_input_grad[:2], upstream)
        else:
            slope = slope_of(plan, *sides(plan), upstream)
            grads = _vjp(gains, temperature, plan, slope, Setting(*setting))
        return (*grads, None, None, None, None)


def _vjp(
    gains: Tensor, temperature: Tensor, plan: Tensor, slope: Tensor, setting: Setting
) -> tuple[Tensor, Tensor]:
    """By windows where the rows are long."""
    if not long_rows.serves(gains, setting.levels):
        return implicit_vjp(gains, temperature, plan, slope, setting)
    n, right = gains.shape[-1], slope.sum(-1)
    scale = scale_of(temperature).expand(*right.shape[:-1], 1, 1)
    w = torch.zeros_like(right)
    parts = gains, setting.levels, setting.centre, setting.rest, scale.squeeze(-1), right, w
    for *row, r, found in zip(*(v.reshape(-1, v.shape[-1]) for v in parts), strict=True):
        at = long_rows.LongRow.of(*row)
        if len(at.centre):
            found[at.open] = long_rows.solve_curvature(at.windows(n * n), r[at.open])
    return _with_moved_thresholds(gains, temperature, plan, slope, setting, w.unsqueeze(-1))


def implicit_vjp(
    gains: Tensor, temperature: Tensor, plan: Tensor, slope: Tensor, setting: Setting
) -> tuple[Tensor, Tensor]:
    """Gradients of gains and temperature, from those of d with the thresholds held still."""
    J, right = curvature(*sides(plan)), slope.sum(-1, keepdim=True)
    w, _ = solve_curvature(J, right, _FLAT)
    return _with_moved_thresholds(gains, temperature, plan, slope, setting, w)


def _with_moved_thresholds(
    gains: Tensor, temperature: Tensor, plan: Tensor, slope: Tensor, setting: Setting, w: Tensor
) -> tuple[Tensor, Tensor]:
    below, above = sides(plan)
    _, later = sides(torch.cat([torch.zeros_like(above[..., :1, :]), above * w], -2))
    later = torch.cat([later[..., 1:, :], torch.zeros_like(later[..., :1, :])], -2)
    by_step = slope - above * (below * w).cumsum(-2) - below * later
    steps, scale = steps_in(gains, temperature, setting), scale_of(temperature)
    by_temperature = -(by_step * steps * scale).sum((-1, -2))
    by_gain = by_step * scale
    if gains.shape[-2] == 1:
        by_gain = by_gain.sum(-2, keepdim=True)
    return by_gain, by_temperature


def slope_of(plan: Tensor, below: Tensor, above: Tensor, upstream: Tensor) -> Tensor:
    """H[V]: products of tails, which lose no digits."""
    head, tail = sides(plan * upstream)
    return below * tail - above * head
