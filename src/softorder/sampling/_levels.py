"""The law of Pareto sampling as an integral over the level s where the last unit lies.

With u shifted so that Σ σ(u) = k, and K(s) = k s - Σ log (1 + e^(u_j+s))/(1 + e^u_j) <= 0,

    P(x) = Π σ(±u_i) <c,x>      c_i = ∫ e^K(s) σ(-u_i-s) ds

K is concave, so that its tangents at two levels tell where it is below any depth. The integrand
is analytic for |Im s| < π. For a large V = Σ σ(u) σ(-u) it is a bell; the worst that it can be is
Gumbel's density, whose Fourier transform Γ(1 + iω) falls like e^(-πω/2). So the trapezoidal rule
has errors of e^(-2π²/(V step²)) and of e^(-π²/step).

The gradient needs the same sums. With w_l the weights of the levels, q_il = σ(-u_i-s_l), p_il = 1 -
q_il, and G_l = w_l Σ_{x_i=1} q_il / <c,x>, which sum to 1,

    ∂log P(x)/∂u_i = x_i - Σ_l G_l p_il - x_i Σ_l w_l p_il q_il / <c,x>
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, pad

from softorder import _check
from softorder.kernels._autograd import wanted

_FARTHEST = 37.0  # logits of the working law: beyond it a unit is certain to 1e-16
_LOWEST = 3 * _FARTHEST  # no level below its negative counts
_HIGHEST = 700.0  # e^700 is finite
_AT_ONCE = 1 << 19  # numbers, 4 MB
_USUAL = 32  # levels
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
        u, size = _clamped(u), size.double().unsqueeze(-1)
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


def log_prob(u: Tensor, size: Tensor, x: Tensor, precision: torch.dtype) -> Tensor:
    """log P(x) in float64 for logits u with Σ σ(u) = k; -inf for what cannot be drawn."""
    shape = torch.broadcast_shapes(x.shape, u.shape)
    known = _check.eager() and _check.plain(u, size, x) and shape[len(shape) - u.dim() :] == u.shape
    if not known or not u.numel():
        return _log_prob(u, size, x, Levels.of(u, size, precision).weights())
    n = u.shape[-1]
    rows, draws = u.reshape(-1, n), x.expand(shape).reshape(-1, u.numel() // n, n)
    found: Tensor = _LogProb.apply(rows, size.reshape(-1), draws, precision)
    return found.reshape(shape[:-1])


def _log_prob(u: Tensor, size: Tensor, x: Tensor, weights: Tensor) -> Tensor:
    taken = torch.where(x > 0, weights, 0.0).sum(-1)
    choice = u.isfinite().any(-1) & (size > 0)
    result = logsigmoid(torch.where(x > 0, u, -u)).sum(-1) + torch.where(choice, taken, 1.0).log()
    return torch.where(x.sum(-1) == size, result, -torch.inf)


class _LogProb(torch.autograd.Function):
    """Some rows after others, so that what is made of them stays in a cache.

    The gradient is a few more sums, instead of one through every product. It takes the levels once
    more: kept, they would be some forty numbers for each logit.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, size: Tensor, x: Tensor, precision: torch.dtype) -> Tensor:
        ctx.save_for_backward(u, size, x)
        ctx.precision = precision
        found = []
        for rows in _rows(u):
            weights = Levels.of(u[rows].detach(), size[rows], precision).weights()
            found.append(_log_prob(u[rows], size[rows], x[:, rows], weights))
        return torch.cat(found, -1)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        u, size, x = ctx.saved_tensors
        if torch.is_grad_enabled():
            plain = _log_prob(u, size, x, Levels.of(u, size, ctx.precision).weights())
            return *wanted(plain, (u,), (True,), upstream), None, None, None
        parts = []
        for rows in _rows(u):
            levels = Levels.of(u[rows].detach(), size[rows], ctx.precision)
            of_rows = upstream[:, rows], u[rows], size[rows], x[:, rows]
            parts.append(_gradient(*of_rows, levels.weights(), levels))
        return torch.cat(parts), None, None, None


def _gradient(
    upstream: Tensor, u: Tensor, size: Tensor, x: Tensor, weights: Tensor, levels: Levels
) -> Tensor:
    """Of all draws of a row at once; where p is nearly 1, by means of q."""
    upstream = torch.where(x.sum(-1) == size, upstream, 0.0)
    taken = torch.where(x > 0, weights, 0.0).sum(-1)
    share = upstream / torch.where(taken > 0, taken, 1.0)
    drawn, shares = ((v.unsqueeze(-1) * (x > 0)).sum(0) for v in (upstream, share))
    odds, times, weight, q = levels
    pull = weight * (q @ shares.unsqueeze(-1)).squeeze(-1)
    over, under = (torch.stack([pull, pull * times], -2) @ q).unbind(-2)
    own = ((weight * times).unsqueeze(-2) @ q.square()).squeeze(-2)
    own = own * odds * shares
    away = torch.exp(-(_clamped(u) - u).abs())
    sure = drawn - upstream.sum(0).unsqueeze(-1) + away * (over - own)
    return torch.where(u > 0, sure, drawn - away * (odds * under + own))


def _clamped(u: Tensor) -> Tensor:
    return u.clamp(-_FARTHEST, _FARTHEST)


def _rows(u: Tensor) -> list[slice]:
    """Some rows at once."""
    number = max(1, _AT_ONCE // (_USUAL * u.shape[-1]))
    return [slice(i, i + number) for i in range(0, len(u), number)]


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
