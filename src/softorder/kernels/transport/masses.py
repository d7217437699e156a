"""log Q_k, the mass of every score in the first k places, in plain torch, and its gradients.

The formulas are derived in relaxations/transport_masses.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels.transport.plans import Setting, implicit_vjp, steps_in
from softorder.kernels.transport.steps import logits, sides

_COLD = 1e-290  # J_jj from which on its entries underflow
_CONTENT = 1e-6  # J_jj at which a solver's tolerance leaves the threshold enough digits


def log_below(
    gains: Tensor,
    temperature: Tensor,
    levels: Tensor,
    total: Tensor,
    centre: Tensor,
    rest: Tensor,
    ks: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """log Q_k (..., len(ks), n), and the rest of balanced thresholds."""
    setting = balanced(gains, temperature, Setting(levels, total, centre, rest))
    return cut(log_plan(steps_in(gains, temperature, setting), setting.rest), ks), setting.rest


def log_below_vjp(
    upstream: Tensor,
    gains: Tensor,
    temperature: Tensor,
    levels: Tensor,
    total: Tensor,
    centre: Tensor,
    rest: Tensor,
    ks: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """The gradients of gains and temperature, for balanced thresholds."""
    setting = Setting(levels, total, centre, rest)
    log_p = log_plan(steps_in(gains, temperature, setting), rest)
    return implicit_vjp(gains, temperature, log_p.exp(), _slope(log_p, upstream, ks), setting)


def balanced(gains: Tensor, temperature: Tensor, setting: Setting) -> Setting:
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
        log_p = log_plan(steps, rest)
        cold = fits & (_diagonal(log_p.exp()) < _CONTENT)
        if _check.at_hand(cold) and not cold.any():
            break
        log_q, log_u = _log_sides(log_p)
        astray = torch.where(below, log_u, log_q)
        left = torch.logsumexp(astray.masked_fill(~below, -torch.inf), -1)
        right = torch.logsumexp(astray.masked_fill(below, -torch.inf), -1)
        rest = torch.where(cold, rest + (left - right) / 2, rest)
    return setting._replace(rest=rest)


def _diagonal(plan: Tensor) -> Tensor:
    """J_jj."""
    below, above = sides(plan)
    return (below * above).sum(-1)


def _log_sides(log_p: Tensor) -> tuple[Tensor, Tensor]:
    """log Q and log U of every threshold."""
    log_u = log_p.flip(-2).logcumsumexp(-2).flip(-2)
    return log_p.logcumsumexp(-2)[..., :-1, :], log_u[..., 1:, :]


def log_plan(steps: Tensor, rest: Tensor) -> Tensor:
    return torch.log_softmax(logits(steps - rest.unsqueeze(-1)), -2)


def cut(log_p: Tensor, ks: Sequence[int]) -> Tensor:
    most = max(ks)
    return log_p[..., :most, :].logcumsumexp(-2)[..., [k - 1 for k in ks], :]


def _slope(log_p: Tensor, upstream: Tensor, ks: Sequence[int]) -> Tensor:
    """Σ_k upstream_k ∂ log Q_k/∂d, and what cold thresholds add to it."""
    plan = log_p.exp()
    (log_q, log_u), (_, above) = _log_sides(log_p), sides(plan)
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
