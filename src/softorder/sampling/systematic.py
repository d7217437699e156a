from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.sampling._base import Design, Generator, register


@register
class Systematic(Design):
    """A comb with teeth 1 apart, laid at random over the units, each as long as its π_i.

    With C_i = π_1 + … + π_i and one uniform number U,  x_i = ⌊C_i + U⌋ - ⌊C_{i-1} + U⌋. Every run
    of neighbours gets its share up to one unit; only about n different subsets can occur, so the
    order of the units matters and most pairs are never drawn together.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="systematic", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "systematic"
    cost = "O(n)"
    paper = "Madow 1949"

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        probs = self.rows.detach().double()
        # a unit that is certain must not depend on the rounding of the sums
        certain = probs >= 1
        ends = torch.where(certain, 0.0, probs).cumsum(-1)
        if ends.shape[-1]:
            ends[..., -1] = (self.size - certain.sum(-1)).to(ends)
        start = self._uniform((*sample_shape, *probs.shape[:-1], 1), generator)
        below = torch.floor(ends + start)
        taken = torch.diff(below, dim=-1, prepend=torch.zeros_like(start))
        return (taken + certain).to(self.rows.dtype)
