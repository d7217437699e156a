"""The plan of one long row with an anchor for every score, where it is not nothing.

At the solution the thresholds ascend: Σ_{l<a} t_l = ε log Σ_i exp((a gains_i - f_i)/ε) is convex
in a. So log P is concave in the anchor, and falls away on both sides of a score's best one: over
about √(ε n) anchors where the scores lie evenly. In order of their gains, neighbours among the
scores have almost the same anchors. A block of them shares a window, and everything that the other
files of this folder say of (thresholds, scores) holds for (blocks, thresholds of the window, scores
of the block).
"""

from __future__ import annotations

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels.transport.steps import CERTAIN, logits, sides

BLOCK = 32  # scores that share a window
MAX_ENTRIES = 2**25  #: of the plan in windows, unless somebody says otherwise
_REACH = 45.0  # exp(-_REACH) of a score is nothing
_FAR = 1e4  # times that: a gap that nothing crosses
_WARM = 1e-4  # J_jj from which on differences of P lose nothing that matters
_SPARE = 2  # anchors on either side, for thresholds that are not yet where they will be


class Windows:
    """Of ascending gains (n,), thresholds centre + rest/scale (n - 1,), and scale = 1/ε."""

    def __init__(
        self,
        gains: Tensor,
        centre: Tensor,
        rest: Tensor,
        scale: Tensor,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        n = len(gains)
        first, last = _ends(gains, centre + rest / scale, _REACH / scale)
        blocks = -(-n // BLOCK)
        gains, first, last = (_in_blocks(v, blocks) for v in (gains, first, last))
        self.n, self.width = n, int((last.amax(-1) - first.amin(-1)).max()) + 1
        _check.methods.plan_size(n, self.width, max_entries)
        self.first = first.amin(-1).clamp(max=n - self.width)
        self._there = _in_blocks(torch.ones_like(first.view(-1)[:n]), blocks, empty=True)
        anchors = self.first.unsqueeze(-1) + torch.arange(self.width, device=gains.device)
        self._anchors, self._thresholds = anchors, anchors[:, :-1]
        steps = (gains.unsqueeze(-2) - self.at(centre)) * scale
        self.steps = steps.clamp(-CERTAIN, CERTAIN)  # none is infinite, as in steps.py
        self.plan = torch.softmax(logits(self.steps - self.at(rest)), -2)
        self.below, self.above = (v * self._there.unsqueeze(-2) for v in sides(self.plan))
        self.plan = self.plan * self._there.unsqueeze(-2)
        self.held = self.plan.sum(-1)
        self.diagonal = self.by_threshold(self.below * self.above)  #: J_jj
        self._warm = bool((self.diagonal > _WARM).all())

    # ---- between numbers of the row and those of the windows

    def at(self, numbers: Tensor) -> Tensor:
        """Of thresholds (n - 1,) or anchors (n,), those of every window, beside its scores."""
        places = self._thresholds if len(numbers) == self.n - 1 else self._anchors
        return numbers[places].unsqueeze(-1)

    def of_scores(self, numbers: Tensor) -> Tensor:
        """Of scores in order (n,), those of every block."""
        return _in_blocks(numbers, len(self.first)).unsqueeze(-2)

    def by_score(self, values: Tensor) -> Tensor:
        """Sums over the window of every score, (n,)."""
        return values.sum(-2).flatten()[: self.n]

    def first_places(self) -> Tensor:
        """The first place of the window of every score, (n,), counted from 1."""
        return (self.first + 1).repeat_interleave(BLOCK)[: self.n]

    def by_threshold(self, values: Tensor) -> Tensor:
        return self._added(values.sum(-1), self._thresholds, self.n - 1)

    def by_anchor(self, values: Tensor) -> Tensor:
        return self._added(values.sum(-1), self._anchors, self.n)

    def _added(self, sums: Tensor, places: Tensor, size: int) -> Tensor:
        return sums.new_zeros(size).index_add(0, places.flatten(), sums.flatten())

    # ---- the curvature J

    def each_curvature(self, v: Tensor) -> Tensor:
        """J_i v of every score: U_l Σ_{m≤l} Q_m v_m + Q_l Σ_{m>l} U_m v_m."""
        v = self.at(v)
        head, tail = (self.below * v).cumsum(-2), self.above * v
        tail = tail.flip(-2).cumsum(-2).flip(-2) - tail
        return self.above * head + self.below * tail

    def curvature(self, v: Tensor) -> Tensor:
        """J v.

        Where nothing is cold it takes two products with P: with y_a = -Σ_{l<a} v_l,
        it is Σ_{a≤l} Σ_i P_ai (y_a - Σ_b P_bi y_b).
        """
        if not self._warm:
            return self.by_threshold(self.each_curvature(v))
        y = -torch.cat([v.new_zeros(1), v.cumsum(0)])[self._anchors]
        y = y - y.mean(-1, keepdim=True)  # of a window: only differences count
        means = self.plan.mT @ y.unsqueeze(-1)
        flow = self.held * y - (self.plan @ means).squeeze(-1)
        return self._added(flow, self._anchors, self.n).cumsum(0)[:-1]


def _ends(gains: Tensor, thresholds: Tensor, reach: Tensor) -> tuple[Tensor, Tensor]:
    """The first and the last anchor of every score that matters.

    Σ_{l<a} (t_l - gains) is convex in a, with its minimum at the best anchor: bisection on both
    sides of it.
    """
    n = len(gains)
    gains, thresholds = _nearer(gains, torch.cummax(thresholds, 0).values, _FAR * reach)
    middle = gains.mean()
    best = torch.searchsorted(thresholds, gains)
    total = torch.cat([gains.new_zeros(1), (thresholds - middle).cumsum(0)])

    def matters(anchor: Tensor) -> Tensor:
        fall = total[anchor] - total[best] - (anchor - best) * (gains - middle)
        return fall <= reach

    ends = []
    for limit in (0, n - 1):
        inside, outside = best, torch.full_like(best, limit)
        for _ in range(n.bit_length()):
            between = torch.div(inside + outside, 2, rounding_mode="floor")
            here = matters(between)
            inside, outside = (
                torch.where(here, between, inside),
                torch.where(here, outside, between),
            )
        inside = torch.where(matters(outside), outside, inside)
        ends.append(inside)
    return (ends[0] - _SPARE).clamp(min=0), (ends[1] + _SPARE).clamp(max=n - 1)


def _nearer(gains: Tensor, thresholds: Tensor, most: Tensor) -> tuple[Tensor, Tensor]:
    """The same two ascending rows with no gap above `most` in both together.

    Beside sums over wider gaps, what is within reach would be rounded away.
    """
    together, order = torch.sort(torch.cat([gains, thresholds]))
    places = torch.empty_like(together)
    gaps = together.diff().clamp(max=most)
    places[order] = torch.cat([gaps.new_zeros(1), gaps.cumsum(0)])
    return places[: len(gains)], places[len(gains) :]


def _in_blocks(values: Tensor, blocks: int, empty: bool = False) -> Tensor:
    """(blocks, BLOCK), filled up with the last number, or with 0."""
    missing = blocks * BLOCK - len(values)
    filler = values[-1:].expand(missing)
    return torch.cat([values, 0 * filler if empty else filler]).view(blocks, BLOCK)
