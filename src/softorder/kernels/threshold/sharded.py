"""Thresholds of rows that are cut among ranks: the solver of one machine, its sums over all.

A rank never sees the scores of another one. What travels are sums over the rows:

    a look at them               their number, infinities, NaN, sum, sum of squares
    every pass                   the 7 sums of `sums.measure`
    rows that moments don't tell the counts of `search`, 31 at a time, then two maxima

All ranks see the same sums, take the same decisions and leave together. That takes a question to
the device in every pass, on a GPU too.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels.shards import Whole
from softorder.kernels.sort import sort
from softorder.kernels.threshold import solver, start
from softorder.kernels.threshold.search import Found, guesses, search
from softorder.kernels.threshold.sums import block_size

_FALLS = 0.2  # of R: a row whose steps leave more is not easy, and passes are dear here
_NEAR = 1.0  # of τ: a score that is known as well as that is known well enough
_SURE = 2.0  # of τ: a bell whose quantile is known as well as that has a good guess


class Look(NamedTuple):
    """What all ranks have, of every row; NaN and infinities apart."""

    n: Tensor
    certain: Tensor  # scores that are +inf
    absent: Tensor  # -inf
    spoiled: Tensor  # NaN
    total: Tensor
    squares: Tensor

    @property
    def valid(self) -> Tensor:
        """As in `start.Rows`."""
        return torch.where(self.spoiled > 0, math.nan, self.n - self.absent)

    def moments(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the finite scores."""
        count = (self.n - self.absent - self.certain).clamp(min=1)
        mean = self.total / count
        return mean, (self.squares / count - mean * mean).clamp(min=0).sqrt()


def look(x: Tensor, shards: Whole) -> Look:
    """One look at the rows (rows, n): one sum over the ranks."""
    sums = x.new_zeros((6, len(x)), dtype=torch.float64)
    for part in x.split(block_size(x), -1):
        finite = part.isfinite()
        there = torch.where(finite, part, 0.0).double()
        counts = torch.ones_like(finite), part == math.inf, part == -math.inf, part.isnan()
        sums += torch.stack([v.sum(-1, dtype=torch.float64) for v in (*counts, there, there**2)])
    return Look(*shards.add(sums))


def solve(x: Tensor, k: Tensor, tau: Tensor, law: Density, shards: Whole) -> Tensor:
    """Centre, rest and passes of the rows (rows, n), stacked; k and tau are (rows,) in float64."""
    if x.shape[-1] == 0:
        x = x.new_full((len(x), 1), -math.inf)  # a rank with nothing takes part, too
    seen = look(x, shards)
    rows = start.Rows(x, k, tau, seen.certain, seen.valid, law, True, seen.n, shards)
    guess, limit, error = _guess(rows, seen)
    centre = guess.to(x.dtype)
    t, passes, done = solver.approach(x, k, tau, law, centre, limit, 1, seen.n, shards, _FALLS)
    answer = torch.stack([centre.double(), tau * t, passes])
    find = partial(_search, law=law, shards=shards)
    numbers = k, tau, seen.certain, seen.valid, seen.n, guess, error, passes
    return solver.amend(answer, ~done, True, find, x, *numbers)


def _guess(rows: start.Rows, seen: Look) -> tuple[Tensor, Tensor, Tensor]:
    """b of a bell, the size that R may have there, and how wrong it is as a quantile."""
    law, tau = rows.law, rows.tau
    mean, deviation = seen.moments()
    count = (seen.n - seen.absent - seen.certain).clamp(min=1)
    k = rows.k - rows.certain
    share = (k / count).clamp(1e-300, 1 - 1e-16)
    bell, own = start.quantiles(share, law)
    spread = deviation / tau
    guess = mean + tau * start.beyond_the_mean(spread, bell, own, law)
    density = torch.exp(-0.5 * bell * bell) / math.sqrt(2 * math.pi)
    error = deviation * (share * (1 - share) / count).sqrt() / density.clamp(min=1e-30)
    easy = rows.rooted & (error < _SURE * tau)
    if law.decay == "none":  # then the extreme scores alone decide at the ends
        easy &= (k >= 1) & (count - k >= 1)
    limit = torch.where(easy & guess.isfinite(), start.GOOD[law.decay], 0.0)
    return guess.nan_to_num(0.0), limit, torch.maximum(error.nan_to_num(1.0), _NEAR * tau)


def _search(
    x: Tensor,
    k: Tensor,
    tau: Tensor,
    certain: Tensor,
    valid: Tensor,
    n: Tensor,
    guess: Tensor,
    error: Tensor,
    passes: Tensor,
    law: Density,
    shards: Whole,
) -> Tensor:
    """The answer by way of the scores next to it."""
    rows = start.Rows(x, k, tau, certain, valid, law, True, n, shards)
    rank = torch.where(rows.rooted, certain + (k - certain).floor(), 0.0).unsqueeze(-1)
    ordered = sort(x).values
    enough = torch.where(rows.rooted, _NEAR * tau, math.inf).unsqueeze(-1)
    found = search(ordered, rank, shards, first=guesses(guess, error), enough=enough)
    fraction = ((k - certain).frac() != 0).unsqueeze(-1) | ~rows.rooted.unsqueeze(-1)
    low, above, turns = _neighbours(x, rank, fraction, found, enough, shards)
    slack = torch.where((found.inside > 1) | (turns == 0), _NEAR, 0.0)
    bracket = start.around(rows, *(v.squeeze(-1).double() for v in (low, above, slack)))
    return solver.finish(rows, bracket, passes + (found.turns + turns).squeeze(-1))


def _neighbours(
    x: Tensor, rank: Tensor, fraction: Tensor, found: Found, enough: Tensor, shards: Whole
) -> tuple[Tensor, Tensor, int]:
    """The score that `rank` others exceed and the one before it, (rows, 1), and passes for them.

    Where the interval is narrow it stands for all that is in it. Only a whole k asks for the one
    before it.
    """
    narrow = found.high.double() - found.low.double() <= enough
    if bool((narrow & (fraction | (found.beyond < rank))).all()):
        middle = 0.5 * found.low + 0.5 * found.high
        return middle, middle, 0
    ends = torch.where(x < found.high, x, -math.inf), torch.where(x >= found.high, -x, -math.inf)
    low, above = shards.most(torch.stack([end.amax(-1, keepdim=True) for end in ends]))
    alone = found.beyond == rank  # else the one before it is in the interval, too
    return low, torch.where(alone, -above, low), 1


def hard(x: Tensor, k: Tensor, shards: Whole) -> Tensor:
    """1 for the k largest scores of a row on all ranks, 0 for others; ties share what is left."""
    *shape, n = x.shape
    rows = x.reshape(math.prod(shape), n)
    if n == 0:
        rows = rows.new_full((len(rows), 1), -math.inf)
    k = k.expand(shape).reshape(-1)
    seen = look(rows, shards)
    edge = _ranked(rows, (k.ceil() - 1).clamp(min=0), seen, shards).unsqueeze(-1)
    above, level = rows > edge, rows == edge
    count, ties = shards.add(torch.stack([m.sum(-1, dtype=torch.float64) for m in (above, level)]))
    share = ((k - count) / ties).clamp(0, 1).to(x.dtype).unsqueeze(-1)
    p = torch.where(above, 1.0, torch.where(level & (rows > -math.inf), share, 0.0)).to(x.dtype)
    p = torch.where((seen.spoiled > 0).unsqueeze(-1), math.nan, p)
    return p[:, :n].reshape(x.shape)


def _ranked(x: Tensor, rank: Tensor, seen: Look, shards: Whole) -> Tensor:
    """The score that exactly `rank` others exceed, of every row; ±inf where it is that."""
    certain, absent = rank < seen.certain, rank >= seen.n - seen.absent
    inside = torch.where(certain | absent, seen.certain, rank).unsqueeze(-1)
    high = search(sort(x).values, inside, shards).high
    edge = shards.most(torch.where(x < high, x, -math.inf).amax(-1))
    return torch.where(certain, math.inf, torch.where(absent, -math.inf, edge))
