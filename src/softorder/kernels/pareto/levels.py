"""The law of Pareto sampling as an integral over the level s where the last unit lies.

With u shifted so that Σ σ(u) = k, and K(s) = k s - Σ log (1 + e^(u_j+s))/(1 + e^u_j) <= 0,

    P(x) = Π σ(±u_i) <c,x>      c_i = ∫ e^K(s) σ(-u_i-s) ds

K is concave, so that its tangents at two levels tell where it is below any depth. The integrand
is analytic for |Im s| < π. For a large V = Σ σ(u) σ(-u) it is a bell; the worst that it can be is
Gumbel's density, whose Fourier transform Γ(1 + iω) falls like e^(-πω/2). So the trapezoidal rule
has errors of e^(-2π²/(V step²)) and of e^(-π²/step).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder import _check

_FARTHEST = 37.0  # logits of the working law: beyond it a unit is certain to 1e-16
_LOWEST = 3 * _FARTHEST  # no level below its negative counts
_HIGHEST = 700.0  # e^700 is finite
_TOGETHER = 4  # (e^(37 + 111))^4 is finite


class _Rule(NamedTuple):
    """What is below e^-digits is left out: 1e-16, or 1e-11 for rows in float32."""

    digits: float
    step: float  #: times the deviation of the bell
    least: float  #: what is added to V, so that π²/step is above the digits, too
    far: float  #: steps to where a bell has fallen so far


_RULES = {
    torch.float64: _Rule(37.0, 0.7, 8.0, 12.5),
    torch.float32: _Rule(25.0, 0.8, 6.0, 9.0),
}


class Levels(NamedTuple):
    """The levels of rows of logits and their weights: c = Σ_l w_l q_l."""

    odds: Tensor  #: e^u, within e^±37
    times: Tensor  #: e^s
    weight: Tensor  #: step e^K(s)
    outside: Tensor  #: q, (..., levels, n)

    @staticmethod
    def of(u: Tensor, size: Tensor, precision: torch.dtype) -> Levels:
        u, size = clamped(u), size.double().unsqueeze(-1)
        odds = u.exp()
        level, step = _places(u.detach(), odds.detach(), size, _RULES[precision])
        times, together = level.exp(), _together(u.detach(), level)
        risen = _risen(odds, times)
        height = size * level + _log_products((1 + odds).unsqueeze(-2), together)
        height = height - _log_products(risen, together)
        outside = risen.reciprocal() if risen.requires_grad else risen.reciprocal_()
        return Levels(odds, times, step * height.exp(), outside)

    def weights(self) -> Tensor:
        """c_i."""
        return (self.weight.unsqueeze(-2) @ self.outside).squeeze(-2)


def clamped(u: Tensor) -> Tensor:
    return u.clamp(-_FARTHEST, _FARTHEST)


def _risen(odds: Tensor, times: Tensor) -> Tensor:
    """1 + e^(u+s), (..., levels, n)."""
    one = odds.new_ones(())
    return torch.addcmul(one, odds.unsqueeze(-2), times.unsqueeze(-1))


def _together(u: Tensor, level: Tensor) -> int:
    """A power of two: the product of so many 1 + e^(u+s) is finite."""
    together = _TOGETHER
    if _check.at_hand(u, level) and u.numel():
        most = float(u.amax() + level.amax().clamp(min=0)) + 1
        together = 1 << int(math.log2(_HIGHEST / most)) if most > 1 else 64
    return min(together, 64)


def _log_products(risen: Tensor, together: int) -> Tensor:
    """Σ log over the units; products save logarithms."""
    product = risen
    while together > 1 and product.shape[-1] > 1:
        product = pad(product, (0, 1), value=1.0) if product.shape[-1] % 2 else product
        half = product.shape[-1] // 2
        product, together = product[..., :half] * product[..., half:], together // 2
    return product.log().sum(-1)


def _places(u: Tensor, odds: Tensor, size: Tensor, rule: _Rule) -> tuple[Tensor, Tensor]:
    """Equal steps between the levels where the integrand has vanished."""
    chance = odds / (1 + odds)
    variance = (chance * (1 - chance)).sum(-1, keepdim=True)
    step = rule.step / torch.sqrt(variance + rule.least)
    ends = torch.cat([-rule.far * step, rule.far * step], -1)
    risen = _risen(odds, ends.exp())
    rest = risen.reciprocal()
    height = size * ends + (rest * (1 + odds).unsqueeze(-2)).log().sum(-1)
    slope = size - u.shape[-1] + rest.sum(-1)
    # a unit with a large u has a small c_i, which comes from far below
    more = u.amax(-1, keepdim=True).clamp(min=0)
    depth = rule.digits + torch.cat([more, torch.zeros_like(more)], -1)
    low, high = (ends - (depth + height) / slope).split(1, -1)
    # with every unit in, K does not fall: σ(-u_i-s) does
    low = low.nan_to_num(-_LOWEST).clamp(-_LOWEST, 0)
    high = high.nan_to_num(_FARTHEST).clamp(0, _FARTHEST + rule.digits)
    count = int(torch.ceil((high - low) / step).max()) + 1 if step.numel() else 1
    return low + step * torch.arange(count, device=u.device, dtype=u.dtype), step
