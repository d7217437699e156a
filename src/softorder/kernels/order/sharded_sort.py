"""Laplace sorts of rows that are cut among ranks, and their gradients; sharded.py has the contract.

The ranks solve the levels of their own places, in the gaps that come to them. On the way back the
gaps bring what their levels pull at either end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder.kernels.fsum.laplace import between
from softorder.kernels.order import gaps
from softorder.kernels.order.gaps import Gaps, Travel
from softorder.kernels.order.outside import distance, tell
from softorder.kernels.order.sharded import Ordered


@dataclass(frozen=True)
class Levels:
    """The levels whose places are on this rank, (rows, n_r), each with the gap that it is in."""

    finite: Tensor  # whether there is such a level
    gap: Tensor  # which of those that came
    s: Tensor  # distances from the ends of the gap, in τ
    behind: Tensor
    left: list[Tensor]
    right: list[Tensor]

    def share(self, g: Tensor) -> Tensor:
        """g/Σ_i f(u)."""
        slope = 0.5 * (self.left[0] * torch.exp(-self.s) + self.right[0] * torch.exp(-self.behind))
        return torch.where(self.finite, g / torch.where(slope > 0, slope, 1.0), 0.0)

    def pulls(self, share: Tensor, width: int) -> Tensor:
        """Σ_j share_j e^-s and Σ_j share_j e^-s' of all levels in every gap, (rows, width, 2)."""
        terms = [torch.where(self.finite, share * torch.exp(-d), 0) for d in (self.s, self.behind)]
        nothing = share.new_zeros(len(share), width)
        return torch.stack([nothing.scatter_add(-1, self.gap, v) for v in terms], -1)

    def heat(self, share: Tensor) -> Tensor:
        """Σ_j share_j Σ_i u f(u)."""
        below = torch.exp(-self.s) * (self.left[1] + self.s * self.left[0])
        above = torch.exp(-self.behind) * (self.right[1] + self.behind * self.right[0])
        return torch.where(self.finite, 0.5 * share * (below - above), 0.0).sum(-1)


def sort(scores: Tensor, ordered: Ordered, moment: int) -> tuple[Tensor, Levels, Travel]:
    """t_j with FSum(t_j) = j - 1/2, for the places of this rank."""
    census = ordered.ranges.census
    found = gaps.find(ordered, moment)
    place = census.starts.unsqueeze(-1) - ordered.in_front.squeeze(-1)  # (ranks, rows)
    travel = gaps.travel(found, place, ordered)
    own = place[ordered.shards.rank].unsqueeze(-1)
    own = own + torch.arange(scores.shape[-1], device=own.device)
    t, levels = _solve(found, travel, own, ordered)
    behind = -math.inf if ordered.descending else math.inf
    others = torch.where(own < 0, math.inf, behind)  # what is certain comes first, or last
    t = torch.where(levels.finite, ordered.sign * t, others).to(scores.dtype)
    return torch.where(census.spoiled, math.nan, t), levels, travel


def sort_vjp(
    upstream: Tensor, ordered: Ordered, levels: Levels, travel: Travel, by_temperature: bool
) -> tuple[Tensor, Tensor | None]:
    """With u = (t_j - x_i)/τ, g upstream and s_j = Σ_i f(u): Σ_j g_j f(u)/s_j, and
    Σ_j g_j Σ_i u f(u)/s_j.

    The second is this rank's part of a sum over all of them.
    """
    ranges, route = ordered.ranges, travel.route
    share = levels.share(ordered.live(ordered.sign * upstream).double())
    pulls = levels.pulls(share, route.incoming.width + 1)
    pulls = route.back(pulls, travel.sent.shape[-1])
    nothing = share.new_zeros(len(share), ranges.x.shape[-1] + 1)
    down, up = (nothing.scatter_add(-1, travel.sent, v) for v in pulls.unbind(-1))
    by_scores = ranges.home((ordered.sign * _pulled(down, up, ordered)).to(upstream.dtype))
    return by_scores, levels.heat(share) if by_temperature else None


def _solve(found: Gaps, travel: Travel, own: Tensor, ordered: Ordered) -> tuple[Tensor, Levels]:
    """The values of the levels own + 1/2, ascending."""
    columns = [found.first, found.number, found.below, found.above, *found.left, *found.right]
    sent = torch.stack([v.gather(-1, travel.sent).double() for v in columns], -1)
    route = travel.route
    came = route.there(sent, route.incoming.width + 1, beyond=math.inf)
    which = torch.searchsorted(came[..., 0].contiguous(), own.double(), right=True) - 1
    which = which.clamp(min=0)
    _, number, below, above, *sums = (v.gather(-1, which) for v in came.unbind(-1))
    left, right = sums[: len(found.left)], sums[len(found.left) :]
    level, tau = own.double() + 0.5, ordered.tau
    centre, rest = between(below, above, left[0], right[0], level - number, tau)
    finite = (own >= 0) & (own < ordered.ranges.census.finite)
    t = torch.where(finite, centre + rest, -math.inf)
    t = t.cummax(-1).values if t.numel() else t
    # neither is taken from t, which is rounded
    s, behind = distance(centre - below, -rest, tau), distance(above - centre, rest, tau)
    return t, Levels(finite, which, s, behind, left, right)


def _pulled(down: Tensor, up: Tensor, ordered: Ordered) -> Tensor:
    """Σ_j share_j f((t_j - x_i)/τ) at the scores of this rank's range.

    From what the levels in every gap pull at the score below (`down`) and above (`up`).
    """
    ranges, x, tau = ordered.ranges, ordered.ranges.x, ordered.tau
    (left,) = ordered.scan(up[..., :-1], 0)
    (right,) = ordered.scan(down[..., 1:], 0, backward=True)
    first, last = ranges.ends
    low = torch.where(ranges.before > 0, ordered.outside.below.place, first)
    seen = pad(right, (0, 1))[..., :1] * torch.exp(-distance(first, low, tau))
    from_low = down[..., :1] + seen  # the first gap pulls at the last score of another rank
    from_high = pad(left, (0, 1)).gather(-1, (ranges.count - 1).clamp(min=0))
    others = tell(ranges.count > 0, low, last, [from_low], [from_high], tau, ordered.shards)
    return 0.5 * (left + right + others.below.at(x)[0] + others.above.at(x)[0])
