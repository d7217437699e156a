from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions.utils import lazy_property

from softorder.kernels.subsets.circle import Share, Subsets
from softorder.sampling._base import register
from softorder.sampling._fit import fit
from softorder.sampling._levels import weights
from softorder.sampling.pareto import Pareto
from softorder.sampling.pareto_corrected import CorrectedPareto


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
        near = CorrectedPareto(self.rows.detach(), self.size)._logits()
        return fit(self.rows, self.size, _mean, near)

    def _odds(self) -> Tensor:
        return self._fitted.detach().exp()

    def _logits(self) -> Tensor:
        return self._fitted

    def inclusion(self) -> Tensor:
        return self.rows


def _mean(u: Tensor, size: Tensor, precision: torch.dtype) -> tuple[Share, Subsets]:
    subsets = Subsets(u, size, precision)
    inside, outside = subsets.pair_sums(weights(u, size, precision))
    return Share(inside / (inside + outside), outside / (inside + outside)), subsets
