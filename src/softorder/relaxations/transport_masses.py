"""log Q_k, the mass of every score in the first k places of a plan, where that underflows too.

In the names of transport_plan.py, with the thresholds held still,

    ∂ log Q_k/∂d_l = -U_k Q_l/Q_k   for l < k        -U_l   for l ≥ k

whose ratios are taken of logarithms: a score that is hopelessly far from the first k places has a
finite mass and the right derivatives. What the thresholds add is as in transport_plan.py. One so
cold that J_jj underflows feels no others, and J w = Σ_i H[V] says w_j = Σ_i H[V]_j/J_jj for it.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import transport
from softorder.kernels._autograd import wanted
from softorder.kernels.transport.masses import balanced, cut, log_plan
from softorder.kernels.transport.plans import Setting
from softorder.kernels.transport.reference import Solution
from softorder.relaxations.transport_plan import twice_differentiable


def log_below(
    gains: Tensor,
    temperature: Tensor,
    levels: Tensor,
    total: Tensor,
    solution: Solution,
    ks: tuple[int, ...],
) -> Tensor:
    """log Q of these thresholds, counted from 1, (..., len(ks), n); differentiable twice."""
    setting = Setting(levels, total, *solution[:2])
    if not _check.eager():
        return _differentiable(gains, temperature, balanced(gains, temperature, setting), ks)
    if torch.is_grad_enabled() and (gains.requires_grad or temperature.requires_grad):
        return _LogBelow.apply(gains, temperature.expand(gains.shape[:-2]), *setting, ks)
    return transport.log_below(gains, temperature, *setting, ks)[0]


def _differentiable(
    gains: Tensor, temperature: Tensor, setting: Setting, ks: tuple[int, ...]
) -> Tensor:
    return cut(log_plan(*twice_differentiable(gains, temperature, setting)), ks)


class _LogBelow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gains: Tensor, temperature: Tensor, *others: Any) -> Tensor:
        *setting, ctx.ks = others
        found, rest = transport.log_below(gains, temperature, *setting, ctx.ks)
        ctx.save_for_backward(gains, temperature, *setting[:-1], rest)
        return found

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gains, temperature, *setting = ctx.saved_tensors
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                result = _differentiable(gains, temperature, Setting(*setting), ctx.ks)
            grads = wanted(result, (gains, temperature), ctx.needs_input_grad[:2], upstream)
        else:
            grads = transport.log_below_vjp(upstream, gains, temperature, *setting, ctx.ks)
        return (*grads, None, None, None, None, None)
