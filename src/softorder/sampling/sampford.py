from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels._recomputed import recomputed
from softorder.kernels.subsets.circle import tilt
from softorder.sampling import _tree
from softorder.sampling._base import Generator, register
from softorder.sampling._exponential import ExponentialDesign
from softorder.sampling._units import log_odds


@register
class Sampford(ExponentialDesign):
    """P(x) ∝ Π_{x_i = 1} π_i/(1-π_i) · Σ_{x_i = 1} (1-π_i): exact without any fitting.

    A draw marks a unit with probability proportional to c_i P(x_i = 1), c = 1 - π, under the law
    without the sum, then draws the other k - 1 units from that law given the marked one. That is
    exact, and never rejects; Sampford's own procedure draws until k units are distinct.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="sampford", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "sampford"
    cost = "O(n log² n)"
    paper = "Sampford 1967"

    def _logits(self) -> Tensor:
        return log_odds(self.rows.double())

    def _weights(self) -> Tensor:
        return 1 - self.rows.double()

    def inclusion(self) -> Tensor:
        return self.rows

    def log_prob(self, x: Tensor) -> Tensor:
        if not self.rows.requires_grad:
            return super().log_prob(x)
        return recomputed(self._log_prob_of, self.rows, self.size, x)

    @classmethod
    def _log_prob_of(cls, rows: Tensor, size: Tensor, x: Tensor) -> Tensor:
        """From the start: the derivative keeps several sums for every unit and point."""
        return ExponentialDesign.log_prob(cls(rows, size), x)

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        probs = self._repeat(sample_shape)
        certain = probs >= 1
        size = self.size - certain.sum(-1)
        marked = self._mark(probs.shape, generator)
        marked = torch.where((size > 0).unsqueeze(-1), marked, False)
        rest = torch.where(marked | certain, -torch.inf, torch.logit(probs))
        left = size - marked.sum(-1)
        u = tilt(rest, left.double())
        others = _tree.draw(torch.sigmoid(u), torch.sigmoid(-u), left, (), generator)
        return (others + (marked | certain)).to(self.rows.dtype)

    def _mark(self, shape: Sequence[int], generator: Generator) -> Tensor:
        weight = (self._weights() * self._subsets.inclusion.inside).detach()
        reached = weight.cumsum(-1)
        level = self._uniform((*shape[:-1], 1), generator) * reached[..., -1:]
        chosen = (reached <= level).sum(-1, keepdim=True).clamp(max=shape[-1] - 1)
        return torch.zeros(shape, dtype=torch.bool, device=level.device).scatter_(-1, chosen, True)
