from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from softorder._noise import gumbel
from softorder.sampling._base import Design, Generator, register
from softorder.sampling._units import largest


@register
class GumbelTopK(Design):
    """The k largest of θ_i + G_i with Gumbel noise G: k draws by e^θ without replacement.

    Also known as weighted random sampling and as the Plackett-Luce law of the first k places. Its
    inclusion probabilities are *not* its parameters, nor `so.soft_topk` of them, and have no closed
    form: no mean here, and no way to ask for given probabilities. `from_probs` draws in
    proportion to π.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="gumbel_topk", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "gumbel_topk"
    takes = "logits"
    exact = False
    offers = ()
    cost = "O(n log k)"
    paper = "Yates & Grundy 1953; Kool et al. 2019"

    @classmethod
    def from_probs(cls, probs: Tensor, size: Tensor) -> Design:
        return cls(probs.log(), size)

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        logits = self.rows.detach().expand(*sample_shape, *self.rows.shape)
        return largest(logits + gumbel(logits, generator), self.size)
