"""Laplace ranks of rows that are cut among ranks, and their gradients; sharded_sort.py has sorts.

Contract. `scores` (rows, n_r) are float32 or float64, those of this rank, of which there may be
none; `temperature` (rows,) is float64 and the same on all ranks. Results are those of contract.py
for the row that the ranks have together. Scores go to the ranges of ranges.py and results come
back: two exchanges of n/ranks numbers each way, and O(ranks²) numbers per row told to everybody.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder.kernels import fsum
from softorder.kernels.formulas import inverse
from softorder.kernels.fsum.laplace import scan
from softorder.kernels.fsum.problem import Problem, Split
from softorder.kernels.order.outside import Outside, tell
from softorder.kernels.order.ranges import Ranges, divide
from softorder.kernels.shards import Shards


@dataclass(frozen=True)
class Ordered:
    """The scores of this rank's range, ascending or, negative, descending; and those outside."""

    ranges: Ranges
    outside: Outside
    temperature: Tensor
    descending: bool
    shards: Shards

    @property
    def tau(self) -> Tensor:
        return self.temperature.unsqueeze(-1)

    @property
    def sign(self) -> int:
        return -1 if self.descending else 1

    @property
    def in_front(self) -> Tensor:
        """How many places, (rows, 1), what is certain takes before all others."""
        certain = self.ranges.census.certain
        return certain if self.descending else torch.zeros_like(certain)

    def scan(self, weights: Tensor, moment: int, backward: bool = False) -> list[Tensor]:
        """Σ w d^k e^-d over the scores of the range up to each, or from each on."""
        x, count = Split.of(self.ranges.x), self.ranges.count.squeeze(-1)
        problem = Problem.of(x, x, weights, self.temperature, count, None)
        return scan(problem.x, problem.w, problem.tau, moment, backward)

    def live(self, values: Tensor) -> Tensor:
        """0 where NaN spoils a row, which has no gradient."""
        return torch.where(self.ranges.census.spoiled, 0.0, values)


def order(
    scores: Tensor, temperature: Tensor, descending: bool, shards: Shards, moment: int
) -> Ordered:
    """What ranks and sorts begin with; `moment` is 1 if the temperature is to get a gradient."""
    ranges = divide(scores, descending, shards)
    outside = _outside(ranges, torch.ones_like(ranges.x), temperature, shards, moment)
    return Ordered(ranges, outside, temperature, descending, shards)


def rank(scores: Tensor, ordered: Ordered) -> Tensor:
    """1/2 + Σ_j F((x_i - x_j)/τ) for the scores of this rank."""
    x, outside = ordered.ranges.x, ordered.outside
    within = _within(ordered, None, derivative=0)
    tails = 0.5 * (outside.above.at(x)[0] - outside.below.at(x)[0])
    ranks = 0.5 + within + tails + ordered.ranges.before + ordered.in_front
    return _all_ranks(scores, ordered.ranges.home(ranks.to(scores.dtype)), ordered)


def rank_vjp(
    upstream: Tensor, ordered: Ordered, by_temperature: bool
) -> tuple[Tensor, Tensor | None]:
    """With u = (x_i - x_j)/τ, g upstream: Σ_j (g_i - g_j) f(u)/τ, and -Σ_i g_i Σ_j u f(u)/τ.

    The second is this rank's part of a sum over all of them.
    """
    ranges, x, scale = ordered.ranges, ordered.ranges.x, inverse(ordered.temperature, torch.float64)
    g = ordered.live(ranges.gather(upstream))
    below, above = ordered.outside.below.at(x), ordered.outside.above.at(x)
    pulled = _outside(ranges, g, ordered.temperature, ordered.shards, 0)
    f = _within(ordered, None) + 0.5 * (below[0] + above[0])
    gf = _within(ordered, g) + 0.5 * (pulled.below.at(x)[0] + pulled.above.at(x)[0])
    by_scores = ranges.home((ordered.sign * scale * (g * f - gf)).to(upstream.dtype))
    if not by_temperature:
        return by_scores, None
    uf = _within(ordered, None, moment=1) + 0.5 * (below[1] - above[1])
    return by_scores, -(g * scale * uf).sum(-1)


def _within(
    ordered: Ordered, weights: Tensor | None, *, derivative: int = 1, moment: int = 0
) -> Tensor:
    """Σ_j w_j u^moment F^(derivative)(u) over the range, at its scores."""
    x, count = ordered.ranges.x, ordered.ranges.count.squeeze(-1)
    return fsum.fsum(
        x,
        x,
        weights,
        ordered.temperature,
        "laplace",
        derivative=derivative,
        moment=moment,
        source_count=count,
        target_count=count,
    )


def _outside(
    ranges: Ranges, weights: Tensor, temperature: Tensor, shards: Shards, moment: int
) -> Outside:
    """The scores of other ranges, with weights, as M_k = 2 Σ w |u|^k f(u) at their ends."""
    low, high = ranges.ends
    sums = [
        2
        * fsum.fsum(
            pad(ranges.x, (0, 1)),  # so that there is something
            torch.cat([low, high], -1),
            pad(weights, (0, 1)),
            temperature,
            "laplace",
            derivative=1,
            moment=k,
            source_count=ranges.count.squeeze(-1),
        )
        for k in range(moment + 1)
    ]
    from_low = [-s[..., :1] if k % 2 else s[..., :1] for k, s in enumerate(sums)]  # u <= 0
    from_high = [s[..., 1:] for s in sums]
    there, tau = ranges.count > 0, temperature.unsqueeze(-1)
    return tell(there, low, high, from_low, from_high, tau, shards)


def _all_ranks(scores: Tensor, ranks: Tensor, ordered: Ordered) -> Tensor:
    """Completed: those that are certain share their places, and the absent ones go last."""
    census = ordered.ranges.census
    first = 0 if ordered.descending else census.finite
    certain = first + (census.certain + 1).double() / 2
    last = (census.present + 1 + census.sizes.sum()).double() / 2
    ranks = torch.where(scores == math.inf, certain.to(ranks.dtype), ranks)
    ranks = torch.where(scores == -math.inf, last.to(ranks.dtype), ranks)
    return torch.where(census.spoiled, math.nan, ranks)
