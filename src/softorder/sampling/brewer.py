from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.sampling._base import Design, Generator, register


@register
class Brewer(Design):
    """One unit after the other, with chances that keep the inclusion probabilities exact.

    With m units still to be drawn, and A the sum of π over those not drawn yet, unit i is the next
    one with probability proportional to

        π_i (A - π_i) / (A - m π_i)

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="brewer", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "brewer"
    cost = "O(n k)"
    paper = "Brewer 1975"

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        probs = self._repeat(sample_shape)
        taken = probs >= 1  # A - m π would be 0 for them, now and later
        left = (self.size - taken.sum(-1)).unsqueeze(-1)
        for step in range(int(left.max()) if left.numel() else 0):
            waiting = torch.where(taken, 0.0, probs)
            weight = self._weight(waiting, waiting.sum(-1, keepdim=True), left - step)
            reached = weight.cumsum(-1)
            level = self._uniform((*probs.shape[:-1], 1), generator) * reached[..., -1:]
            chosen = (reached <= level).sum(-1, keepdim=True).clamp(max=probs.shape[-1] - 1)
            taken = taken.scatter(-1, chosen, (step < left) | taken.gather(-1, chosen))
        return taken.to(self.rows.dtype)

    @staticmethod
    def _weight(probs: Tensor, total: Tensor, left: Tensor) -> Tensor:
        scarce = (total - left * probs).clamp(min=torch.finfo(probs.dtype).eps * total)
        # the last unit is drawn in proportion to π: the fraction would be 0/0 if it is the only one
        return probs * torch.where(left == 1, 1.0, (total - probs) / scarce)
