"""What other ranks add to the Laplace sums of one range, when they have the ranges around it.

Seen from a place a beyond them, sources decay together. With d = |t - x_i|/τ and D = |t - a|/τ,

    Σ_i w_i e^-d = e^-D M_0          Σ_i w_i d e^-d = e^-D (M_1 + D M_0)

at every t that is still further away, where M_k = Σ_i w_i d^k e^-d at a. So it is enough to tell
the others a place on either side, and the M_k there.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import torch
from torch import Tensor

from softorder.kernels.fsum.laplace import seen_from
from softorder.kernels.order.exchange import all_gather
from softorder.kernels.shards import Shards

_FAR = 800.0  # e^-d is 0 from here on
_NOWHERE = sys.float_info.max  # the place of sources that are not there


def distance(one: Tensor, other: Tensor, tau: Tensor) -> Tensor:
    """|one - other|/τ, or far."""
    return ((one - other).abs() / tau).clamp(max=_FAR)


@dataclass(frozen=True)
class View:
    """Sources on one side, seen from a place (rows, 1) there: M_0, M_1, ..."""

    place: Tensor
    moments: list[Tensor]
    tau: Tensor

    def at(self, x: Tensor) -> list[Tensor]:
        """The same from further away."""
        return seen_from(distance(x, self.place, self.tau), self.moments)


@dataclass(frozen=True)
class Outside:
    """The sources of all earlier ranks, and those of all later ones."""

    below: View
    above: View


def tell(
    there: Tensor,
    low: Tensor,
    high: Tensor,
    from_low: list[Tensor],
    from_high: list[Tensor],
    tau: Tensor,
    shards: Shards,
) -> Outside:
    """Tells the other ranks of one's sources, and hears of theirs. All are columns (rows, 1).

    Sources, if they are `there`, are within [low, high], and from there they are M_0, M_1, ... An
    earlier rank's `high` is not above one's `low`.
    """
    told = all_gather(torch.cat([there.double(), low, high, *from_low, *from_high], -1), shards)
    exists, lows, highs, *sums = told.unsqueeze(-1).unbind(-2)
    ranks = torch.arange(shards.size, device=told.device)[:, None, None]
    earlier, later = ((exists > 0) & v for v in (ranks < shards.rank, ranks > shards.rank))
    below = torch.where(earlier, highs, -_NOWHERE)
    above = torch.where(later, lows, _NOWHERE)
    m = len(from_low)
    return Outside(
        _together(below, below.amax(0), [torch.where(earlier, s, 0.0) for s in sums[m:]], tau),
        _together(above, above.amin(0), [torch.where(later, s, 0.0) for s in sums[:m]], tau),
    )


def _together(places: Tensor, place: Tensor, sums: list[Tensor], tau: Tensor) -> View:
    """Sources of several ranks, from the place that is beyond all of them."""
    moved = seen_from(distance(places, place, tau), sums)
    return View(place, [s.sum(0) for s in moved], tau)
