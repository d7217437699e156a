"""Pareto sampling: the k largest of logit π_i plus logistic noise.

With u = logit π and L_i logistic, unit i is above the level -s with probability σ(u_i + s). The k
units are those above the level where the last of them lies, hence

    P(x) = ∫ Π_{x_i=1} σ(u_i+s) Π_{x_i=0} σ(-u_i-s) Σ_{x_i=1} σ(-u_i-s) ds = e^<u,x> <c,x>

    c_i = ∫ e^(k s) / Π_j (1 + e^(u_j+s)) σ(-u_i-s) ds

so that the design is a weighted conditional Poisson design with known everything. The integrand is
analytic and decays at both ends: the trapezoidal rule converges exponentially.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.distributions.utils import lazy_property
from torch.nn.functional import logsigmoid, pad

from softorder import _check
from softorder.kernels.subsets.circle import Share, Subsets
from softorder.sampling._base import Generator, register
from softorder.sampling._exponential import ExponentialDesign
from softorder.sampling._fit import fit
from softorder.sampling._units import largest, log_odds

_DIGITS = 37.0
_TOGETHER = 4  # (e^(37 + 74))^4 is finite
_FARTHEST = 37.0  # logits of the working law: beyond it a unit is certain to 1e-16


@register
class Pareto(ExponentialDesign):
    """The fastest design of fixed size: as fast as a top-k. Its inclusion probabilities are near π.

    How near, `inclusion` tells exactly; the difference vanishes as V = Σ π(1-π) grows.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="pareto", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "pareto"
    exact = False
    cost = "O(n log k)"
    paper = "Rosén 1997"

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        odds = self._odds()
        level = self._uniform((*sample_shape, *odds.shape), generator)
        noise = level.div_(1 - level).to(odds.dtype)  # e^L of logistic noise L
        # what is impossible stays behind what only underflows
        x = largest(torch.where(odds > 0, odds * noise, -1.0), self.size)
        return x.to(self.rows.dtype)

    def _odds(self) -> Tensor:
        probs = self.rows.detach()
        return probs / (1 - probs)

    def _logits(self) -> Tensor:
        return log_odds(self.rows.double())

    def _weights(self) -> Tensor:
        return level_weights(self._u, self.size)


@register
class AdjustedPareto(Pareto):
    """Pareto sampling with other logits, found so that the inclusion probabilities are π.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="pareto_adjusted", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "pareto_adjusted"
    exact = True
    cost = "O(n log k), once O(n)"
    paper = "Rosén 1997; Aires 1999"

    @lazy_property
    def _fitted(self) -> Tensor:
        return fit(self.rows, self.size, _mean)

    def _odds(self) -> Tensor:
        return self._fitted.detach().exp()

    def _logits(self) -> Tensor:
        return self._fitted

    def inclusion(self) -> Tensor:
        return self.rows


def level_weights(u: Tensor, size: Tensor) -> Tensor:
    """c_i, up to a common factor; with Σ σ(u) = k the integrand is largest near s = 0."""
    u = u.clamp(-_FARTHEST, _FARTHEST)
    size = size.double().unsqueeze(-1)
    level, step = _levels(u.detach(), size)
    # 1 + e^(u+s) of all units and levels: products of a few stay finite and save logarithms
    risen = 1 + u.exp().unsqueeze(-1) * level.exp().unsqueeze(-2)
    missing = -risen.shape[-2] % _TOGETHER
    grouped = pad(risen, (0, 0, 0, missing), value=1.0).unflatten(-2, (_TOGETHER, -1))
    height = size * level - functools.reduce(torch.mul, grouped.unbind(-3)).log().sum(-2)
    height = height - height.detach().amax(-1, keepdim=True)
    return step * (risen.reciprocal() @ height.exp().unsqueeze(-1)).squeeze(-1)


def _levels(u: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    """Equal steps between the levels where the integrand has vanished."""
    variance = (torch.sigmoid(u) * torch.sigmoid(-u)).sum(-1, keepdim=True)
    # errors e^(-2π²/(V step²)) of the Gaussian part and e^(-2π²/step) of the poles at ±iπ
    step = 0.7 / torch.sqrt(variance + 2)
    # a unit with a large u has a small c_i, which comes from far below
    low = _edge(u, size, -step, _DIGITS + u.amax(-1, keepdim=True).clamp(min=0))
    high = _edge(u, size, step, torch.full_like(step, _DIGITS))
    count = int(torch.ceil((high - low) / step).max()) + 1 if step.numel() else 1
    return low + step * torch.arange(count, device=u.device, dtype=u.dtype), step


def _edge(u: Tensor, size: Tensor, step: Tensor, depth: Tensor) -> Tensor:
    """A level in the direction of `step` where the integrand has fallen by e^-depth."""
    top = logsigmoid(-u).sum(-1, keepdim=True)
    far = 8 * step
    for _ in range(math.ceil(math.log2(8 * _FARTHEST * math.sqrt(u.shape[-1] + 2)))):
        height = size * far + logsigmoid(-(u + far)).sum(-1, keepdim=True) - top
        # with every unit in, the integrand itself does not fall: its factor σ(-u_i-s) does
        height = height - torch.where(far > 0, far - _FARTHEST, 0.0).clamp(min=0)
        short = height > -depth
        if _check.at_hand(short) and not short.any():
            break
        far = torch.where(short, 1.3 * far, far)
    return far


def _mean(u: Tensor, size: Tensor, precision: torch.dtype) -> tuple[Share, Subsets]:
    subsets = Subsets(u, size, precision)
    weights = level_weights(u, size)
    inside, outside = subsets.pair_sums(weights)
    return Share(inside / (inside + outside), outside / (inside + outside)), subsets
