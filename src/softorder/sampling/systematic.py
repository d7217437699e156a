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
        # neither what is certain, nor what is impossible, nor the size may depend on rounding
        certain = probs >= 1
        left = (self.size - certain.sum(-1)).to(probs).unsqueeze(-1)
        ends = torch.where(certain, 0.0, probs).cumsum(-1)
        start = self._uniform((*sample_shape, *probs.shape[:-1], 1), generator)
        below = torch.floor(ends + start).minimum(left)
        below = torch.where(ends < ends[..., -1:], below, left)  # behind the last that can be drawn
        taken = torch.diff(below, dim=-1, prepend=torch.zeros_like(start))
        return (taken + certain).to(self.rows.dtype)
