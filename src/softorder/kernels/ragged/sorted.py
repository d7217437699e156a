"""Rows of different lengths in ascending order: what `sort/rows.py` has of matrices.

Numbers of rows stand beside every score here, and indices are those of all scores, (total,): so
elementwise formulas above sorted rows, gathers and scatters serve both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypedDict

import torch
from torch import Tensor

from softorder.kernels.formulas import at_hand, factor_for, far_from_zero
from softorder.kernels.ragged.contract import sorted_rows
from softorder.kernels.ragged.segments import Segments
from softorder.kernels.sort.rows import SortedRows


@dataclass(frozen=True, kw_only=True)
class SortedSegments(SortedRows):
    """`SortedRows` of values (total,)."""

    segments: Segments
    targets: Segments  #: of roots and sums: as many as scores, unless they are thresholds
    own_count: Tensor | None  #: of finite scores, for every row

    @property
    def n(self) -> Tensor:  # type: ignore[override]
        """The length of the row of every score."""
        return self.segments.spread(self.segments.offsets.diff())

    @property
    def count(self) -> Tensor | None:
        return self.own_count

    @property
    def offsets(self) -> tuple[Tensor, Tensor]:
        return self.segments.offsets, self.targets.offsets

    def thresholds(self) -> SortedSegments:
        offsets = self.segments.offsets
        more = torch.arange(offsets.shape[0], device=offsets.device)
        return self.aimed_at(offsets + more, self.segments.size + self.segments.count)

    def aimed_at(self, offsets: Tensor, size: int) -> SortedSegments:
        """These rows with other targets, of which there are so many in all."""
        return replace(self, targets=Segments(offsets, size))

    def aimed_at_each(self, count: int) -> SortedSegments:
        """These rows with so many targets in each."""
        rows = self.segments.count
        every = torch.arange(rows + 1, device=self.values.device)
        return self.aimed_at(count * every, count * rows)

    def spoil_rows(self, result: Tensor) -> Tensor:
        """NaN in those of the rows (rows, m) whose scores hold one."""
        spoiled = self.segments.add_up(self.values.isnan()) > 0
        return torch.where(spoiled.unsqueeze(-1), math.nan, result)

    def levels(self) -> Tensor:
        return self.targets.place

    def column(self, numbers: Tensor) -> Tensor:
        return self.segments.spread(numbers)

    def beside_targets(self, numbers: Tensor) -> Tensor:
        return self.targets.spread(numbers)

    def available_at_targets(self) -> Tensor:
        offsets = self.segments.offsets
        absent = self.segments.add_up(self.values == -math.inf).long()
        return self.targets.spread(offsets.diff() - absent)

    def neighbours(self, ordered: Tensor, above: Tensor) -> list[Tensor]:
        first, behind = (self.targets.spread(ends) for ends in self._ends)
        high = torch.minimum(first + above.clamp(min=1), behind - 1)
        low, last = torch.maximum(high - 1, first), ordered.shape[0] - 1
        return [ordered.gather(-1, place.clamp(0, last)) for place in (low, high)]

    @property
    def _ends(self) -> tuple[Tensor, Tensor]:
        return self.segments.offsets[:-1], self.segments.offsets[1:]

    def mirror(self, ordered: Tensor) -> Tensor:
        place, begin = self.places(), self.segments.begin
        available = self.available
        mirrored = torch.where(place < available, available - 1 - place, place)
        return ordered.gather(-1, begin + mirrored)

    def places(self) -> Tensor:
        return self.segments.place

    def factor(self) -> Tensor | None:
        """The same, beside every score."""
        if self.most <= far_from_zero(self.values.dtype):
            return None
        finite = self.values.isfinite()
        most = self.segments.largest(torch.where(finite, self.values.abs(), 0.0))
        found = factor_for(most)
        return None if found is None else self.segments.spread(found)

    def factor_of_rows(self, factor: Tensor) -> Tensor:
        own = self.segments.largest(factor)
        return torch.where(own.isfinite(), own, 1.0).unsqueeze(-1)

    def ascending(self, t: Tensor) -> Tensor:
        """In order, which moves nothing but roundings."""
        if at_hand(t) and not bool(self._falls(t.detach()).any()):
            return t
        ordered = sorted_rows(t, self.segments.offsets)[0]
        return t + (ordered - t.detach()).nan_to_num(0.0)

    def _falls(self, t: Tensor) -> Tensor:
        """Where the next value of the same row is less."""
        falls, ends = t[1:] < t[:-1], self.segments.offsets[1:-1]
        return falls.index_fill_(0, ends[(ends > 0) & (ends < len(t))] - 1, False)

    def at_threshold(self, values: Tensor, level: Tensor) -> Tensor:
        return values.gather(-1, self.segments.begin + self.segments.row + level)


class _Layout(TypedDict):
    segments: Segments
    targets: Segments


def sort_segments(scores: Tensor, offsets: Tensor) -> SortedSegments:
    """Sorts every row, stably."""
    segments = Segments(offsets, scores.shape[0])
    values, order = sorted_rows(scores.detach(), offsets)
    order, all_of = order.add_(segments.begin), _Layout(segments=segments, targets=segments)
    if at_hand(values):
        most = values.abs().amax().item() if values.numel() else 0.0
        if math.isfinite(most):
            return SortedSegments(values, order, None, None, None, most, **all_of, own_count=None)
    absent = segments.spread(segments.add_up(values == -math.inf).long())
    spoiled = segments.spread(segments.add_up(values.isnan()) > 0)
    length = segments.spread(offsets.diff())
    turn = segments.begin + (segments.place + absent) % length  # the absent ones came first
    values, order = values.gather(-1, turn), order.gather(-1, turn)
    count = segments.add_up(values.isfinite()).long()
    found = values, order, segments.spread(count), length - absent, spoiled
    return SortedSegments(*found, **all_of, own_count=count)
