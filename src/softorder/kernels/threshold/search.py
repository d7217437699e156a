"""Where the k-th largest score is, of rows that are cut among ranks: by counting.

The ranks count what they have above some places, and the sums of these counts tell between which
two places the score is. Half of the places are evenly spaced, which is best for scores that are
spread evenly, and half of them are evenly spaced among the floating-point numbers, of which there
are finitely many: every turn leaves a sixteenth of those, whatever the scores are. The first places
may be told, around a guess.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels.shards import Whole

PLACES = 31  # at a time: so many counts of a row travel at once
_EVEN = 16  # of them


class Found(NamedTuple):
    """Numbers of every row, (rows, 1); scores are in [low, high)."""

    low: Tensor
    high: Tensor
    inside: Tensor  # how many scores
    beyond: Tensor  # how many are not below high
    turns: Tensor  # how often the ranks counted


def search(
    ordered: Tensor,
    rank: Tensor,
    shards: Whole,
    *,
    first: Tensor | None = None,
    enough: Tensor | None = None,
) -> Found:
    """The interval of the score that exactly `rank` others exceed, (rows, 1), in its dtype.

    It has no other score, or no other number, or is no wider than `enough`. `ordered` are one's own
    scores, ascending; `first` are places to begin with, ascending, (rows, PLACES) at the most.
    """
    limits = torch.finfo(ordered.dtype)
    low, high = (torch.full_like(rank, v, dtype=ordered.dtype) for v in (limits.min, math.inf))
    wide = torch.full_like(rank, math.inf)
    found = Found(low, high, wide, torch.zeros_like(rank), torch.zeros_like(rank))
    places = _places(low, high) if first is None else first.to(ordered.dtype)
    while True:
        found = _narrowed(ordered, rank, found, places, shards)
        if not bool(_open(found, enough).any()):
            return found
        places = _places(found.low, found.high)


def _open(found: Found, enough: Tensor | None) -> Tensor:
    wide = found.high > torch.nextafter(found.low, found.high)
    if enough is not None:
        wide &= found.high.double() - found.low.double() > enough
    return wide & (found.inside > 1)


def _narrowed(ordered: Tensor, rank: Tensor, found: Found, places: Tensor, shards: Whole) -> Found:
    """The part between two of the places, or between one of them and an end."""
    ends = torch.cat([found.low, places, found.high], -1).clamp(found.low, found.high)
    ends = ends.sort(-1).values
    counts = shards.add(_at_least(ordered, ends[..., 1:-1]).to(rank.dtype))
    outer = found.beyond + found.inside, found.beyond
    counts = torch.cat([outer[0], counts, outer[1]], -1)
    last = ends.shape[-1] - 2
    chosen = ((counts > rank).sum(-1, keepdim=True) - 1).clamp(0, last)
    low, high = (ends.gather(-1, chosen + i) for i in (0, 1))
    above, beyond = (counts.gather(-1, chosen + i) for i in (0, 1))
    return Found(low, high, above - beyond, beyond, found.turns + 1)


def _at_least(ordered: Tensor, places: Tensor) -> Tensor:
    """How many of the ascending scores are not below each place."""
    return ordered.shape[-1] - torch.searchsorted(ordered, places.contiguous())


def _places(low: Tensor, high: Tensor) -> Tensor:
    """Places inside the interval: some evenly spaced, some so among the floating-point numbers."""
    part = torch.arange(1, _EVEN + 1, device=low.device, dtype=torch.float64) / (_EVEN + 1)
    most = torch.finfo(low.dtype).max
    even = low.double() * (1 - part) + high.double().clamp(max=most) * part
    steps = torch.arange(1, PLACES - _EVEN + 1, device=low.device)
    parts = PLACES - _EVEN + 1
    ends = (_numbered(end) for end in (low, high))
    # of each end apart: their difference may be no int64
    first, last = (end // parts * steps + end % parts * steps // parts for end in ends)
    between = _numbered(low) + (last - first)
    return torch.cat([even.to(low.dtype), _number(between, low.dtype)], -1)


def guesses(guess: Tensor, error: Tensor) -> Tensor:
    """Places around a guess, (rows, PLACES), the closer the nearer: 4^j errors away."""
    half = PLACES // 2
    away = 4.0 ** torch.arange(half, device=guess.device, dtype=torch.float64) - 0.75
    away = torch.cat([-away.flip(-1), away.new_zeros(1), away])
    return guess.unsqueeze(-1) + error.unsqueeze(-1) * away


# ---- floating-point numbers by their order -------------------------------------------------------


def _numbered(x: Tensor) -> Tensor:
    """Integers in the order of the numbers; -0 and 0 are one."""
    bits = x.contiguous().view(_integers(x.dtype))
    return torch.where(bits < 0, -(bits & torch.iinfo(bits.dtype).max), bits).long()


def _number(place: Tensor, dtype: torch.dtype) -> Tensor:
    whole = place.to(_integers(dtype))
    return torch.where(whole < 0, torch.iinfo(whole.dtype).min - whole, whole).view(dtype)


def _integers(dtype: torch.dtype) -> torch.dtype:
    return torch.int32 if dtype == torch.float32 else torch.int64
