"""Ranks and sorted values of entropic transport plans that nobody sees as a whole.

With P in windows (kernels/transport/windows.py),

    rank_i = 1 + Σ_l U_li        value_a = Σ_i P_ai of_i

and the derivatives are those of transport_plan.py. Second ones come from the whole plan.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels._autograd import wanted
from softorder.kernels.transport.long_rows import LongRow, solve_curvature
from softorder.kernels.transport.plans import Setting, slope_of
from softorder.kernels.transport.reference import Solution
from softorder.kernels.transport.steps import scale_of
from softorder.relaxations.transport_plan import whole_plan


def plan_sums(
    gains: Tensor,
    temperature: Tensor,
    of: Tensor | None,
    levels: Tensor,
    total: Tensor,
    solution: Solution,
    max_entries: int,
) -> Tensor:
    """Ranks (..., n) without `of`; with `of` (..., n), its sums over the places."""
    setting = Setting(levels, total, solution.centre, solution.rest)
    gains, of = gains.contiguous(), None if of is None else of.contiguous()
    return _Sums.apply(gains, temperature.expand(gains.shape[:-1]), of, max_entries, *setting)


class _Sums(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        gains: Tensor,
        temperature: Tensor,
        of: Tensor | None,
        max_entries: int,
        *setting: Tensor,
    ) -> Tensor:
        ctx.max_entries = max_entries
        ctx.save_for_backward(gains, temperature, of, *setting)
        result = torch.empty_like(gains)
        for out, payload, row in _rows(result, of, _long_rows(gains, temperature, setting)):
            windows = row.windows(max_entries)
            if payload is None:
                out[row.order] = windows.first_places() + windows.by_score(windows.above)
            else:
                out.copy_(windows.by_anchor(windows.plan * windows.of_scores(payload[row.order])))
        return result

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gains, temperature, of, *setting = ctx.saved_tensors
        needed = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled() or not _check.eager():
            n = gains.shape[-1]
            _check.methods.plan_size(n, n, ctx.max_entries)
            grads = _whole_backward(gains, temperature, of, Setting(*setting), upstream, needed)
        else:
            grads = _backward(ctx, upstream)
        return (*grads, *(None for _ in range(5)))


def _backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
    gains, temperature, of, *setting = ctx.saved_tensors
    by_gains, by_temperature = torch.empty_like(gains), torch.empty_like(temperature)
    by_of = None if of is None else torch.empty_like(of)
    rows = _rows(upstream, of, _long_rows(gains, temperature, setting))
    flat = by_gains.view(-1, gains.shape[-1])
    for i, (g, payload, row) in enumerate(rows):
        windows = row.windows(ctx.max_entries)
        if payload is None:
            places = torch.arange(windows.width, device=g.device, dtype=g.dtype).unsqueeze(-1)
            values = places * windows.of_scores(g[row.order])
        else:
            values = windows.at(g) * windows.of_scores(payload[row.order])
            assert by_of is not None
            direct = windows.by_score(windows.plan * windows.at(g))
            by_of.view(-1, len(g))[i, row.order] = direct
        slope = slope_of(windows.plan, windows.below, windows.above, values)
        w = solve_curvature(windows, windows.by_threshold(slope))
        by_step = (slope - windows.each_curvature(w)) * row.scale
        flat[i, row.order] = windows.by_score(by_step)
        by_temperature.view(-1)[i] = -(by_step * windows.steps).sum()
    return by_gains, by_temperature, by_of


def _rows(values: Tensor, of: Tensor | None, rows: list[LongRow]) -> Any:
    n = values.shape[-1]
    payloads = [None] * len(rows) if of is None else of.reshape(-1, n)
    return zip(values.reshape(-1, n), payloads, rows, strict=True)


def _long_rows(gains: Tensor, temperature: Tensor, setting: Any) -> list[LongRow]:
    levels, _, centre, rest = setting
    parts = [v.reshape(-1, v.shape[-1]) for v in (gains, levels, centre, rest)]
    parts.append(scale_of(temperature).reshape(-1))
    return [LongRow.of(*row) for row in zip(*parts, strict=True)]


def _whole_backward(
    gains: Tensor,
    temperature: Tensor,
    of: Tensor | None,
    setting: Setting,
    upstream: Tensor,
    needed: tuple[bool, ...],
) -> tuple[Tensor | None, ...]:
    """Differentiable once more."""
    with torch.enable_grad():
        plan = whole_plan(gains.unsqueeze(-2), temperature, setting)
        if of is None:
            places = torch.arange(1, gains.shape[-1] + 1, device=gains.device, dtype=gains.dtype)
            result = (plan * places.unsqueeze(-1)).sum(-2)
        else:
            result = (plan * of.unsqueeze(-2)).sum(-1)
    inputs = (gains, temperature, gains if of is None else of)
    return wanted(result, inputs, needed, upstream)
