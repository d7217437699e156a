from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels.subsets.circle import Share, Subsets
from softorder.sampling import _tree
from softorder.sampling._base import Design, Generator, register
from softorder.sampling._exponential import ExponentialDesign
from softorder.sampling._fit import fit


@register
class ConditionalPoisson(ExponentialDesign):
    """Independent units given their number: P(x) ∝ e^<θ,x>, the law of the largest entropy.

    No other law of subsets of size k with the same inclusion probabilities has as much entropy. θ
    are its natural parameters: log P(x) = <θ,x> - log Z(θ), where ∇ log Z = E[x] are the inclusion
    probabilities and ∇² log Z = Cov(x). All of these cost O(n). `from_probs` finds the θ of given
    inclusion probabilities by Newton's method.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="conditional_poisson", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "conditional_poisson"
    takes = "logits"
    cost = "O(n log n)"
    paper = "Hájek 1964; Chen, Dempster & Liu 1994"

    @classmethod
    def from_probs(cls, probs: Tensor, size: Tensor) -> Design:
        design = cls(probs, size)
        design._fitted = fit(probs, design.size, _mean)
        return design

    _fitted: Tensor | None = None

    def _logits(self) -> Tensor:
        return self.rows if self._fitted is None else self._fitted

    def inclusion(self) -> Tensor:
        return super().inclusion() if self._fitted is None else self.rows

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        u = self._u.detach()
        chances = torch.sigmoid(u), torch.sigmoid(-u)
        return _tree.draw(*chances, self.size, sample_shape, generator).to(self.rows.dtype)

    def working_logits(self) -> Tensor:
        """θ, shifted so that the finite ones have mean 0."""
        theta = self._logits()
        finite = theta.isfinite()
        total = torch.where(finite, theta, 0.0).sum(-1, keepdim=True)
        shifted = theta - total / finite.sum(-1, keepdim=True).clamp(min=1)
        return torch.where(finite, shifted, theta).to(self.rows.dtype)

    def log_normaliser(self) -> Tensor:
        """log Z(θ) = log Σ_{|x| = k} e^<θ,x>, as <θ,x> - log P(x) of the most likely x."""
        theta = self._logits().double()
        order = theta.argsort(dim=-1, descending=True, stable=True).argsort(-1)
        best = (order < self.size.unsqueeze(-1)).to(theta.dtype)
        score = torch.where(best > 0, theta, 0.0).sum(-1)
        return (score - self.log_prob(best)).to(self.rows.dtype)


def _mean(u: Tensor, size: Tensor, precision: torch.dtype) -> tuple[Share, Subsets]:
    subsets = Subsets(u, size, precision)
    return subsets.inclusion, subsets
