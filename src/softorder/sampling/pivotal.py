"""Pivotal designs: two units fight until one of them is decided."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder.sampling._base import Design, Generator, register


class Fight(NamedTuple):
    """Of every pair: the unit that goes on, its new probability; the other one, and its fate."""

    unit: Tensor
    prob: Tensor
    decided: Tensor
    fate: Tensor


def fight(a: Tensor, b: Tensor, i: Tensor, j: Tensor, level: Tensor) -> Fight:
    """Unit i with probability a against unit j with b; `level` is uniform in [0, 1).

    a + b <= 1:  one goes on with a + b, the other is out;   i goes on with probability a/(a + b)
    a + b > 1:   one is in, the other goes on with a + b - 1;   i is in with (1 - b)/(2 - a - b)
    """
    both = a + b
    crowded = both > 1
    first_in = level * (2 - both) < 1 - b  # so, with a = 1, i is in for sure
    first_wins = level * both < a
    first_goes_on = torch.where(crowded, ~first_in, first_wins)
    prob = torch.where(crowded, both - 1, both)
    unit, decided = (torch.where(first_goes_on, x, y) for x, y in ((i, j), (j, i)))
    return Fight(unit, prob, decided, crowded.to(a.dtype))


@register
class Pivotal(Design):
    """Fights in a tournament of random pairs: log n rounds, exact probabilities, high entropy.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="pivotal", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "pivotal"
    cost = "O(n log n)"
    paper = "Deville & Tillé 1998"

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        probs = self._repeat(sample_shape)
        unit = self._uniform(probs.shape, generator).argsort(-1)
        prob = probs.gather(-1, unit)
        x = torch.zeros(probs.shape, dtype=self.rows.dtype, device=probs.device)
        while (units := unit.shape[-1]) > 1:
            if units % 2:
                # a unit that does not exist loses against everybody, also in x
                prob, unit = pad(prob, (0, 1)), torch.cat([unit, unit[..., :1]], -1)
            half = prob.shape[-1] // 2
            level = self._uniform((*prob.shape[:-1], half), generator)
            (a, b), (i, j) = (v.tensor_split([half], -1) for v in (prob, unit))
            result = fight(a, b, i, j, level)
            x.scatter_add_(-1, result.decided, result.fate.to(x.dtype))
            unit, prob = result.unit, result.prob
        return x.scatter_add_(-1, unit, prob.round().to(x.dtype))


@register
class OrderedPivotal(Design):
    """The same, but units fight in their order: the survivor against the next one.

    Neighbours then seldom come together: as in systematic sampling, every first part of the units
    gets its share up to one unit, but with more randomness.

    >>> import torch, softorder as so
    >>> probs = torch.tensor([0.9, 0.6, 0.4, 0.1])
    >>> so.sampling.sample(probs, design="pivotal_ordered", sample_shape=(9,)).sum(-1).unique()
    tensor([2.])
    """

    name = "pivotal_ordered"
    cost = "O(n), n steps"
    paper = "Deville & Tillé 1998; Chauvet 2012"

    def sample(self, sample_shape: Sequence[int] = (), generator: Generator = None) -> Tensor:
        probs = self._repeat(sample_shape)
        x = torch.zeros(probs.shape, dtype=self.rows.dtype, device=probs.device)
        level = self._uniform(probs.shape, generator)
        prob, unit = probs[..., :1], torch.zeros_like(probs[..., :1], dtype=torch.int64)
        for j in range(1, probs.shape[-1]):
            challenger = torch.full_like(unit, j)
            result = fight(prob, probs[..., j : j + 1], unit, challenger, level[..., j : j + 1])
            x.scatter_(-1, result.decided, result.fate.to(x.dtype))
            unit, prob = result.unit, result.prob
        return x.scatter_(-1, unit, prob.round().to(x.dtype))
