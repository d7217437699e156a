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
from softorder.kernels._autograd import wanted
from softorder.kernels.transport.reference import Solution
from softorder.kernels.transport.steps import logits, sides
from softorder.relaxations.transport_plan import (
    Setting,
    implicit_vjp,
    steps_in,
    twice_differentiable,
)

_COLD = 1e-290  # J_jj from which on its entries underflow
_CONTENT = 1e-6  # J_jj at which a solver's tolerance leaves the threshold enough digits


def log_below(
    gains: Tensor,
    temperature: Tensor,
    levels: Tensor,
    total: Tensor,
    solution: Solution,
    ks: tuple[int, ...],
) -> Tensor:
    """log Q of these thresholds, counted from 1, (..., len(ks), n); differentiable twice."""
    setting = _balanced(gains, temperature, Setting(levels, total, *solution[:2]))
    if not _check.eager():
        return _cut(_log_plan(*twice_differentiable(gains, temperature, setting)), ks)
    if torch.is_grad_enabled() and (gains.requires_grad or temperature.requires_grad):
        return _LogBelow.apply(gains, temperature.expand(gains.shape[:-2]), *setting, ks)
    return _cut(_log_plan(steps_in(gains, temperature, setting), setting.rest), ks)


def _balanced(gains: Tensor, temperature: Tensor, setting: Setting) -> Setting:
    """With cold thresholds to full precision, too.

    A solver is content when no mass is astray, however far from its place the threshold is. There
    U of the scores below falls by exp(-z) and Q of those above rises by exp(z), and both are equal.
    """
    setting = Setting(*(value.detach() for value in setting))
    steps, rest = steps_in(gains.detach(), temperature.detach(), setting), setting.rest
    below = steps < 0
    fits = (below.sum(-1) == setting.levels) & (setting.levels > 0)
    fits &= setting.levels < setting.total
    for _ in range(2):
        log_plan = _log_plan(steps, rest)
        cold = fits & (_diagonal(log_plan.exp()) < _CONTENT)
        if _check.at_hand(cold) and not cold.any():
            break
        log_q, log_u = _log_sides(log_plan)
        astray = torch.where(below, log_u, log_q)
        left = torch.logsumexp(astray.masked_fill(~below, -torch.inf), -1)
        right = torch.logsumexp(astray.masked_fill(below, -torch.inf), -1)
        rest = torch.where(cold, rest + (left - right) / 2, rest)
    return setting._replace(rest=rest)


def _diagonal(plan: Tensor) -> Tensor:
    """J_jj."""
    below, above = sides(plan)
    return (below * above).sum(-1)


def _log_sides(log_plan: Tensor) -> tuple[Tensor, Tensor]:
    """log Q and log U of every threshold."""
    log_u = log_plan.flip(-2).logcumsumexp(-2).flip(-2)
    return log_plan.logcumsumexp(-2)[..., :-1, :], log_u[..., 1:, :]


def _log_plan(steps: Tensor, rest: Tensor) -> Tensor:
    return torch.log_softmax(logits(steps - rest.unsqueeze(-1)), -2)


def _cut(log_plan: Tensor, ks: tuple[int, ...]) -> Tensor:
    most = max(ks)
    return log_plan[..., :most, :].logcumsumexp(-2)[..., [k - 1 for k in ks], :]


class _LogBelow(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gains: Tensor, temperature: Tensor, *others: Any) -> Tensor:
        *setting, ctx.ks = others
        log_plan = _log_plan(steps_in(gains, temperature, Setting(*setting)), setting[-1])
        ctx.save_for_backward(gains, temperature, log_plan, *setting)
        return _cut(log_plan, ctx.ks)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        gains, temperature, log_plan, *tensors = ctx.saved_tensors
        setting = Setting(*tensors)
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                result = _cut(_log_plan(*twice_differentiable(gains, temperature, setting)), ctx.ks)
            grads = wanted(result, (gains, temperature), ctx.needs_input_grad[:2], upstream)
        else:
            slope = _slope(log_plan, upstream, ctx.ks)
            grads = implicit_vjp(gains, temperature, log_plan.exp(), slope, setting)
        return (*grads, None, None, None, None, None)


def _slope(log_plan: Tensor, upstream: Tensor, ks: tuple[int, ...]) -> Tensor:
    """Σ_k upstream_k ∂ log Q_k/∂d, and what cold thresholds add to it."""
    plan = log_plan.exp()
    (log_q, log_u), (_, above) = _log_sides(log_plan), sides(plan)
    slope = torch.zeros_like(above)
    for g, k in zip(upstream.unbind(-2), ks, strict=True):
        ahead = torch.exp(log_q[..., : k - 1, :] - log_q[..., k - 1 : k, :])
        slope[..., : k - 1, :] -= (g * above[..., k - 1, :]).unsqueeze(-2) * ahead
        slope[..., k - 1 :, :] -= g.unsqueeze(-2) * above[..., k - 1 :, :]
    cold = _diagonal(plan) < _COLD
    if _check.at_hand(cold) and not cold.any():
        return slope
    return slope - _by_cold(torch.where(cold, slope.sum(-1), 0.0).unsqueeze(-1), log_q, log_u)


def _by_cold(right: Tensor, log_q: Tensor, log_u: Tensor) -> Tensor:
    """J_i w of the cold thresholds, w_j = right_j/J_jj, by logarithms: one sum for each sign."""
    log_j = torch.logsumexp(log_q + log_u, -1, keepdim=True)
    result = torch.zeros_like(log_q)
    for sign in (1, -1):
        log_w = (sign * right).clamp(min=0).log() - log_j
        early = (log_w + log_q).logcumsumexp(-2) + log_u
        later = (log_w + log_u).flip(-2).logcumsumexp(-2).flip(-2)[..., 1:, :] + log_q[..., :-1, :]
        result += sign * early.exp()
        result[..., :-1, :] += sign * later.exp()
    return result
