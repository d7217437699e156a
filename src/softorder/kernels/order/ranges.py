"""Rows that are cut among ranks anywhere, cut anew by value: every rank gets a range of scores.

Ranges follow each other in the order of the ranks. The ranks cut where a sample says: each has
sorted its own scores and tells 2·ranks of them, evenly spaced. Between two of them are at most
n_r/(2·ranks) others, so that no range has more than 2 n/ranks scores, but for roundings. Equal
scores are in the order of their ranks and places there, and may end up in different ranges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder.kernels.order.exchange import Route, all_gather
from softorder.kernels.shards import Shards
from softorder.kernels.sort import sort


@dataclass(frozen=True)
class Census:
    """The scores of all ranks; columns (rows, 1), and numbers by rank."""

    finite: Tensor
    certain: Tensor  # +inf
    spoiled: Tensor  # whether one is NaN
    sizes: Tensor  # (ranks,), scores of any kind

    @property
    def present(self) -> Tensor:
        return self.finite + self.certain

    @property
    def starts(self) -> Tensor:
        """(ranks,), scores of any kind on earlier ranks."""
        return self.sizes.cumsum(0) - self.sizes


@dataclass(frozen=True)
class Ranges:
    """This rank's range of the finite scores of every row, in ascending order."""

    x: Tensor  # (rows, m) float64
    count: Tensor  # (rows, 1), how many of them there are
    before: Tensor  # (rows, 1), how many are in earlier ranges
    census: Census
    _route: Route
    _order: Tensor
    _merge: Tensor

    @property
    def ends(self) -> tuple[Tensor, Tensor]:
        """The first and the last score, (rows, 1) each; 0 where there is none."""
        there, last = self.count > 0, (self.count - 1).clamp(min=0)
        x = torch.where(there, pad(self.x, (0, 1)), 0.0)
        return x[..., :1], x.gather(-1, last)

    def gather(self, local: Tensor) -> Tensor:
        """What belongs to scores, from where these came to where they are; float64."""
        arrived = self._route.there(local.gather(-1, self._order), self.x.shape[-1])
        return arrived.gather(-1, self._merge).double()

    def home(self, ordered: Tensor) -> Tensor:
        """The way back; 0 for what is not finite."""
        arrived = torch.empty_like(ordered).scatter(-1, self._merge, ordered)
        local = self._route.back(arrived, self._order.shape[-1])
        return torch.empty_like(local).scatter(-1, self._order, local)


def divide(scores: Tensor, descending: bool, shards: Shards) -> Ranges:
    """Ranges of the scores (rows, n_r), or of the negative ones for a descending order."""
    finite = scores.isfinite()
    directed = -scores if descending else scores
    values, order = sort(torch.where(finite, directed, math.inf))
    count = finite.sum(-1, keepdim=True)
    kinds = [count, (scores == math.inf).sum(-1, keepdim=True)]
    kinds += [scores.isnan().any(-1, keepdim=True), torch.full_like(count, scores.shape[-1])]
    padded = pad(values, (0, 1), value=math.inf)
    sample = padded.gather(-1, _sampled(count, shards.size))
    told = all_gather(torch.cat([sample.double(), *(v.double() for v in kinds)], -1), shards)
    counts, certain, spoiled, sizes = told[..., -4:].long().unbind(-1)

    splitters = _splitters(told[..., :-4], counts.unsqueeze(-1))
    ends = torch.cat([_below(padded, count, *splitters, shards.rank), count], -1)
    route = Route.of(ends.diff(dim=-1, prepend=torch.zeros_like(count)), shards)
    merged, merge = sort(route.there(values, route.incoming.width, beyond=math.inf))
    numbers = [v.sum(0).unsqueeze(-1) for v in (counts, certain, spoiled)]
    return Ranges(
        merged.double(),
        route.incoming.count,
        route.lengths[..., : shards.rank].sum((0, 2)).unsqueeze(-1),
        Census(numbers[0], numbers[1], numbers[2] > 0, sizes[:, 0]),
        route,
        order,
        merge,
    )


def _sampled(count: Tensor, ranks: int) -> Tensor:
    """The places of a sample among `count` sorted scores, (..., 2·ranks)."""
    return torch.arange(2 * ranks, device=count.device) * count // (2 * ranks)


def _splitters(samples: Tensor, counts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Where ranges begin: (value, rank, place there) of one of the scores, each (rows, ranks - 1).

    From the samples of all ranks (ranks, rows, 2·ranks). A sample stands for the scores up to the
    next one of its rank, so that the weight of the samples below it is about the number of scores
    below it; too much by half a step of all ranks, finite/(4·ranks), on average.
    """
    ranks, total = len(samples), counts.sum(0)
    place = _sampled(counts, ranks)
    weight = torch.cat([place[..., 1:], counts], -1) - place
    rank = torch.arange(ranks, device=place.device)[:, None, None].expand_as(place)
    values, order = sort(_by_row(samples))  # stable: by value, rank and place
    weight, rank, place = (_by_row(v).gather(-1, order) for v in (weight, rank, place))
    below = weight.cumsum(-1) - weight
    wanted = (4 * torch.arange(1, ranks, device=place.device) + 1) * total // (4 * ranks)
    chosen = torch.searchsorted(below, wanted)
    # where the samples end, so do the scores
    values, rank, place = pad(values, (0, 1), value=math.inf), pad(rank, (0, 1)), pad(place, (0, 1))
    return values.gather(-1, chosen), rank.gather(-1, chosen), place.gather(-1, chosen)


def _by_row(values: Tensor) -> Tensor:
    """(ranks, rows, m) as (rows, ranks·m)."""
    return values.transpose(0, 1).flatten(1)


def _below(
    values: Tensor, count: Tensor, splitter: Tensor, rank: Tensor, place: Tensor, me: int
) -> Tensor:
    """How many of this rank's scores are before every splitter."""
    splitter = splitter.to(values.dtype)
    lower = torch.searchsorted(values, splitter)
    upper = torch.searchsorted(values, splitter, right=True)
    equals = torch.where(rank == me, place, torch.where(rank > me, upper, lower))
    return torch.where(splitter == math.inf, count, equals)
