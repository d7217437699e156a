"""Plans from thresholds in plain torch, and their gradients.

The formulas are derived in relaxations/transport_plan.py and relaxations/transport_masses.py.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels.transport import long_rows
from softorder.kernels.transport.steps import (
    curvature,
    logits,
    scale_of,
    sides,
    solve_curvature,
    steps_of,
)

FLAT = torch.finfo(torch.float64).tiny  #: J where a threshold moves nothing that could be shown


class Setting(NamedTuple):
    """The constants of a plan."""

    levels: Tensor
    total: Tensor
    centre: Tensor
    rest: Tensor


def steps_in(gains: Tensor, temperature: Tensor, setting: Setting) -> Tensor:
    levels, total, centre, _ = setting
    return steps_of(gains, levels, total, centre, scale_of(temperature))


def plan_of(steps: Tensor, rest: Tensor) -> Tensor:
    return torch.softmax(logits(steps - rest.unsqueeze(-1)), -2)


def plan(
    gains: Tensor, temperature: Tensor, levels: Tensor, total: Tensor, centre: Tensor, rest: Tensor
) -> Tensor:
    """P (..., anchors, n)."""
    return plan_of(steps_in(gains, temperature, Setting(levels, total, centre, rest)), rest)


def plan_vjp(
    upstream: Tensor,
    gains: Tensor,
    temperature: Tensor,
    levels: Tensor,
    total: Tensor,
    centre: Tensor,
    rest: Tensor,
) -> tuple[Tensor, Tensor]:
    """The gradients of gains and temperature."""
    found = plan(gains, temperature, levels, total, centre, rest)
    slope = slope_of(found, *sides(found), upstream)
    return _vjp(gains, temperature, found, slope, Setting(levels, total, centre, rest))


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
    w, _ = solve_curvature(J, right, FLAT)
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
