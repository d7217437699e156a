"""E log <d,x> of the laws of `_exponential`, which their entropy and KL need.

With log y = ∫ (e^-t - e^-ty) dt/t, from 0 to ∞, and m = E <d,x>,

    E log <d,x> = log m + ∫ (e^-tm - M(t)) dt/t          M(t) = E e^(-t <d,x>)

M is a ratio of sums over subsets: with u - td instead of u, e^<u,x> becomes e^(<u,x> - t<d,x>). As
a function of log t the integrand is analytic for |Im| < π/2, and vanishes like t² on one side, like
e^-ty on the other, y the least <d,x>: the trapezoidal rule converges like e^(-π²/step), and needs
as many points for every n and k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from softorder.kernels.subsets.circle import Subsets, tilt

_DIGITS = {torch.float64: 37.0, torch.float32: 25.0}
_POINTS = {torch.float64: 128, torch.float32: 64}
_TOGETHER = 16  # points at once
_TINY = 1e-300


class Law(NamedTuple):
    """P(x) ∝ e^<u,x> <c,x> over the subsets of size k; c is None for 1."""

    u: Tensor
    c: Tensor | None
    size: Tensor
    precision: torch.dtype

    def log_sum(self, loss: Tensor) -> Tensor:
        """log Σ_x <c,x> e^<u-l,x>, less Σ log(1 + e^u), for a loss l of every unit.

        With u - l = v + a, Σ σ(v) = k, it is k a + Σ log (1 + e^v)/(1 + e^u) + log P(S = k), and
        log E <c,x> of the law without c.
        """
        theta = self.u - loss
        v = tilt(theta, self.size.double().expand(theta.shape[:-1]))
        free = v.isfinite()
        shift = torch.where(free, (theta - v).detach(), -torch.inf).amax(-1)
        shift = torch.where(shift.isfinite(), shift, 0.0)
        grown = softplus(torch.where(free, v, 0.0)) - softplus(torch.where(free, self.u, 0.0))
        certain = torch.where(self.u > 0, -loss - shift.unsqueeze(-1), 0.0)
        subsets = Subsets(v, self.size.expand(v.shape[:-1]), self.precision)
        result = self.size * shift + torch.where(free, grown, certain).sum(-1) + subsets.log_mass
        if self.c is None:
            return result
        taken = (self.c * subsets.inclusion.inside).sum(-1)
        return result + torch.where(taken > 0, taken, 1.0).log()


def mean_log(law: Law, values: Tensor, mean: Tensor) -> Tensor:
    """E log <d,x> for d >= 0 and its mean m = E <d,x>; 0 where m is."""
    possible = mean > 0
    mean = torch.where(possible, mean, 1.0)
    nodes, step = _nodes(law, values.detach())
    whole = law.log_sum(torch.zeros_like(law.u))
    missing = torch.zeros_like(mean)
    for t in nodes.split(_TOGETHER):
        damped = law.log_sum(t.unsqueeze(-1) * values) - whole
        missing = missing + (torch.exp(-t * mean) - torch.exp(damped)).sum(0)
    return torch.where(possible, mean.log() + step * missing, 0.0)


def _nodes(law: Law, values: Tensor) -> tuple[Tensor, Tensor]:
    """t in equal steps of log t, (points, ...), from t² <d,x>² to e^(-t<d,x>) below rounding."""
    digits, points = _DIGITS[law.precision], _POINTS[law.precision]
    takes_part = law.u > -torch.inf
    up = torch.where(takes_part, values, torch.inf).sort(-1).values
    down = torch.where(takes_part, values, 0.0).sort(-1, descending=True).values
    place = torch.arange(values.shape[-1], device=values.device)
    first = place < law.size.unsqueeze(-1)
    least, most = (torch.where(first, row, 0.0).sum(-1).clamp(_TINY) for row in (up, down))
    low, high = -digits / 2 - most.log(), math.log(digits) - least.log()
    step = (high - low) / (points - 1)
    count = torch.arange(points, device=values.device, dtype=values.dtype)
    return torch.exp(low + step * count.view(-1, *[1] * low.dim())), step
