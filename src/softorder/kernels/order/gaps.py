"""The gaps between sorted scores in which the values of a sort lie, and their way to its places.

FSum is known at every score, and so are the levels that it reaches in the gap below. A gap goes to
the ranks that have the places of its levels. Many levels may fall into one gap, and many gaps have
none: only gaps with levels travel, no more of them than there are places there or, but for one for
every rank, scores here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder.kernels.fsum.problem import ascending
from softorder.kernels.order.exchange import Route, all_gather
from softorder.kernels.order.sharded import Ordered


@dataclass(frozen=True)
class Gaps:
    """The gaps below the scores of this rank's range, and the one above: (rows, m + 1) each.

    Between its ends, with s and s' the distances from them in τ, FSum(t) is
    number - L e^-s/2 + R e^-s'/2. The first and the last of all gaps have one end.
    """

    below: Tensor
    above: Tensor
    number: Tensor  # how many scores are below
    left: list[Tensor]  # L, the scores below as seen from there; if asked for, their M_1
    right: list[Tensor]
    first: Tensor  # the levels first + 1/2, ..., end - 1/2 are in the gap
    end: Tensor


@dataclass(frozen=True)
class Travel:
    """Where gaps go: `sent` (rows, width) are those that do, in the order of the route."""

    route: Route
    sent: Tensor


def find(ordered: Ordered, moment: int) -> Gaps:
    """The gaps of this rank's range; with M_1 for moment = 1."""
    ranges, outside = ordered.ranges, ordered.outside
    x, count, before = ranges.x, ranges.count, ranges.before
    ones = torch.ones_like(x)
    left = _plus(ordered.scan(ones, moment), outside.below.at(x))
    right = _plus(ordered.scan(ones, moment, backward=True), outside.above.at(x))
    number = before + torch.arange(x.shape[-1] + 1, device=x.device)
    at_scores = number[..., 1:] + 0.5 * ((right[0] - 1) - left[0])
    first, end = _levels(at_scores, ordered)
    below, above = outside.below, outside.above
    return Gaps(
        torch.cat([below.place, x], -1),
        _closed(x, above.place, count),
        number,
        [torch.cat([v, sums], -1) for v, sums in zip(below.moments, left, strict=True)],
        [_closed(sums, v, count) for v, sums in zip(above.moments, right, strict=True)],
        first,
        end,
    )


def _levels(at_scores: Tensor, ordered: Ordered) -> tuple[Tensor, Tensor]:
    """The levels in every gap; beyond the last score of all are those that are left."""
    ranges, total = ordered.ranges, ordered.ranges.census.finite
    if at_scores.numel():
        at_scores = ascending(at_scores, ranges.count)
    end = torch.floor(pad(at_scores, (0, 1), value=math.inf).clamp(max=total) + 0.5).long()
    final = (ranges.before + ranges.count == total) & (ranges.count > 0)
    last = end.gather(-1, (ranges.count - 1).clamp(min=0))
    last = torch.where(final, total, torch.where(ranges.count > 0, last, 0))
    # roundings may differ between ranks: where one ends the next begins
    ends = all_gather(last, ordered.shards).cummax(0).values
    ends = torch.cat([torch.zeros_like(last).unsqueeze(0), ends])
    start, stop = ends[ordered.shards.rank], ends[ordered.shards.rank + 1]
    end = torch.minimum(torch.maximum(end, start), stop)
    return torch.cat([start, end[..., :-1]], -1), end


def travel(gaps: Gaps, place: Tensor, ordered: Ordered) -> Travel:
    """Gaps with levels, to the ranks with their places: those from place[rank] on."""
    census = ordered.ranges.census
    start, stop = gaps.first[..., :1], gaps.end[..., -1:]
    low, high = (
        torch.minimum(torch.maximum(v.t(), start), stop)
        for v in (place, place + census.sizes.unsqueeze(-1))
    )
    chosen, ends = _with_levels(gaps)
    first = torch.searchsorted(ends, low.contiguous(), right=True)
    last = torch.searchsorted(ends, high.contiguous()) + 1
    route = Route.of(torch.where(low < high, last - first, 0), ordered.shards)
    outgoing = route.outgoing
    taken = outgoing.moved(first, outgoing.width).clamp(0, chosen.shape[-1] - 1)
    return Travel(route, chosen.gather(-1, taken))


def _with_levels(gaps: Gaps) -> tuple[Tensor, Tensor]:
    """Which gaps have levels, side by side, and where these end."""
    m = gaps.end.shape[-1]
    has = gaps.end > gaps.first
    slot = torch.where(has, has.cumsum(-1) - 1, m)
    every = torch.arange(m, device=slot.device).expand_as(slot)
    nothing = slot.new_zeros(len(slot), m + 1)
    beyond = torch.full_like(nothing, torch.iinfo(torch.int64).max)
    chosen = nothing.scatter(-1, slot, every)
    ends = beyond.scatter(-1, slot, torch.where(has, gaps.end, beyond[..., :m]))
    return chosen, ends


def _plus(some: list[Tensor], others: list[Tensor]) -> list[Tensor]:
    return [a + b for a, b in zip(some, others, strict=True)]


def _closed(rows: Tensor, last: Tensor, count: Tensor) -> Tensor:
    """Rows with one more number, behind the last that counts."""
    return torch.cat([rows, last], -1).scatter(-1, count, last)
