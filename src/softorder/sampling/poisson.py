from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.sampling._base import Design, Generator, register


@register
class Poisson(Design):
    """Every unit by itself: x_i = 1 with probability π_i, so the number of units is random.

    log P(x) = Σ x log π + (1-x) log(1-π), and units are independent: P(x_i = x_j = 1) = π_i π_j.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([1.0, 0.5, 0.0])
    >>> so.sampling.sample(probs, design="poisson", sample_shape=(99,)).amax(0)
    tensor([1., 1., 0.])
    """

    name = "poisson"
    fixed_size = False
    offers = ("inclusion", "log_prob", "joint", "entropy", "kl")
    cost = "O(n)"
    paper = "Hájek 1964"

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        probs = self._repeat(sample_shape)
        return (self._uniform(probs.shape, generator) < probs).to(self.rows.dtype)

    def log_prob(self, x: Tensor) -> Tensor:
        chance = torch.where(x > 0, self.rows, 1 - self.rows)
        return chance.log().sum(-1)

    def joint(self) -> Tensor:
        pairs = self.rows.unsqueeze(-1) * self.rows.unsqueeze(-2)
        return torch.where(_diagonal(pairs), self.rows.unsqueeze(-1), pairs)

    def entropy(self) -> Tensor:
        p, q = self.rows, 1 - self.rows
        return -(torch.xlogy(p, p) + torch.xlogy(q, q)).sum(-1)

    def _kl(self, other: Poisson) -> Tensor:
        p, q = self.rows, other.rows
        out, away = 1 - p, 1 - q
        gained = torch.xlogy(p, p) + torch.xlogy(out, out)
        return (gained - torch.xlogy(p, q) - torch.xlogy(out, away)).sum(-1)


def _diagonal(matrix: Tensor) -> Tensor:
    return torch.eye(matrix.shape[-1], dtype=torch.bool, device=matrix.device)
