"""Pareto sampling: the k largest of logit π_i plus logistic noise.

With u = logit π and L_i logistic, unit i is above the level -s with probability σ(u_i + s). The k
units are those above the level where the last of them lies, hence

    P(x) = ∫ Π_{x_i=1} σ(u_i+s) Π_{x_i=0} σ(-u_i-s) Σ_{x_i=1} σ(-u_i-s) ds = e^<u,x> <c,x>

    c_i = ∫ e^(k s) / Π_j (1 + e^(u_j+s)) σ(-u_i-s) ds

so that the design is a weighted conditional Poisson design with known everything; `_levels` has the
integrals.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.sampling import _levels
from softorder.sampling._base import Generator, register
from softorder.sampling._exponential import ExponentialDesign
from softorder.sampling._units import largest, log_odds


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
        return _levels.weights(self._u, self.size, self._precision)

    def log_prob(self, x: Tensor) -> Tensor:
        return _levels.log_prob(self._u, self.size, x, self._precision).to(self.rows.dtype)
