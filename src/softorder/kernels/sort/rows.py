"""Rows in ascending order, with what takes no part behind everything else."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from softorder.kernels._moved import learns, moved, narrow
from softorder.kernels.formulas import at_hand, column, factor_for, far_from_zero, multiplied
from softorder.kernels.sort.contract import sort


@dataclass(frozen=True)
class SortedRows:
    """Finite scores, then +inf, then the absent ones (-inf); NaN only where the row has one.

    `values` has no derivative. The counts are columns; None when every score is finite.
    """

    values: Tensor
    order: Tensor  # where each value came from
    finite: Tensor | None  # how many scores are finite
    present: Tensor | None  # how many are not -inf
    spoiled: Tensor | None  # whether one is NaN
    most: float = math.inf  # no |score| of any row is larger

    @property
    def n(self) -> int:
        return self.values.shape[-1]

    @property
    def available(self) -> Tensor | int:
        """How many scores take part."""
        return self.n if self.present is None else self.present

    @property
    def count(self) -> Tensor | None:
        """How many are finite, one number per row, as the kernels want it."""
        return None if self.finite is None else self.finite.squeeze(-1)

    @property
    def offsets(self) -> tuple[Tensor, Tensor] | None:
        """Those of sources and targets, for rows one behind another (kernels/ragged)."""
        return None

    def thresholds(self) -> SortedRows:
        """These rows with n + 1 targets in each, for the levels 0 to n."""
        return self

    def levels(self) -> Tensor:
        """0 to n."""
        return torch.arange(self.n + 1, device=self.values.device)

    def column(self, numbers: Tensor) -> Tensor:
        """Numbers of rows, beside the scores."""
        return column(numbers)

    def beside_targets(self, numbers: Tensor) -> Tensor:
        """Numbers of rows, beside the targets."""
        return numbers.expand(self.values.shape[:-1]).unsqueeze(-1)

    def available_at_targets(self) -> Tensor | int:
        return self.available

    def neighbours(self, ordered: Tensor, above: Tensor) -> list[Tensor]:
        """What stands before these places of the rows of targets, and in them; the last two if
        there are not so many, and in an empty row anything.
        """
        above = above.clamp(1, max(self.n - 1, 1)).expand(*ordered.shape[:-1], -1)
        return [ordered.gather(-1, place.clamp(max=self.n - 1)) for place in (above - 1, above)]

    @property
    def middle_of_certain(self) -> Tensor | float:
        """How many scores are finite, and half of those that are +inf."""
        if self.finite is None or self.present is None:
            return float(self.n)
        return (self.finite + self.present).to(self.values.dtype) / 2

    def in_order(self, values: Tensor) -> Tensor:
        """What stands beside the scores, in sorted order."""
        return self._moved(values, back=False)

    def to_origin(self, ordered: Tensor) -> Tensor:
        """Entries in sorted order, back at the places of their scores."""
        return self._moved(ordered, back=True)

    def _moved(self, values: Tensor, back: bool) -> Tensor:
        kept = self._kept if learns(values) else self.order
        return moved(values, self.order, kept, back)

    @cached_property
    def _kept(self) -> Tensor:
        """The order, as the graphs of these rows keep it; one for all of them."""
        return narrow(self.order)

    def mirror(self, ordered: Tensor) -> Tensor:
        """The other way round; what is absent stays behind."""
        if self.present is None:
            return ordered.flip(-1)
        place = self.places()
        mirrored = torch.where(place < self.present, self.present - 1 - place, place)
        return ordered.gather(-1, mirrored)

    def spoil(self, result: Tensor) -> Tensor:
        """NaN in the rows that hold one."""
        return result if self.spoiled is None else torch.where(self.spoiled, math.nan, result)

    def places(self) -> Tensor:
        return torch.arange(self.n, device=self.values.device)

    def factor(self) -> Tensor | None:
        """What scores and τ are to be multiplied by, so that no sum of differences overflows."""
        if self.n == 0 or self.most <= far_from_zero(self.values.dtype):
            return None
        last = self.values[..., -1:]
        if self.finite is not None:
            last = self.values.gather(-1, (self.finite - 1).clamp(min=0))
        return factor_for(torch.maximum(self.values[..., :1].abs(), last.abs()))

    def in_range(
        self, scores: Tensor, temperature: Tensor, factor: Tensor | None
    ) -> tuple[SortedRows, Tensor, Tensor]:
        """These rows, their scores as they came and τ, multiplied by it."""
        if factor is None:
            return self, scores, temperature
        rows = replace(self, values=factor * self.values)
        return rows, factor * scores, multiplied(temperature, self.factor_of_rows(factor))

    def factor_of_rows(self, factor: Tensor) -> Tensor:
        """The factor of each row (..., 1), from that beside its scores."""
        return factor

    def ascending(self, t: Tensor) -> Tensor:
        """Values of these rows, which ascend but for roundings, without those."""
        return ascending(t)

    def at_threshold(self, values: Tensor, level: Tensor) -> Tensor:
        """Of n + 1 values for the thresholds of a row, that at the level that a score asks for."""
        return values.gather(-1, level)

    def ranges(self, descending: bool) -> tuple[Tensor, Tensor]:
        """The places [first, last), from 0, that every score shares with its equals.

        In the order of the scores as they came. The absent ones do not share, but keep theirs.
        """
        present = torch.as_tensor(self.available, device=self.values.device)
        place = self.places()
        there = place < present
        values = torch.where(there, self.values, math.inf)
        first = torch.searchsorted(values, values)
        last = torch.minimum(torch.searchsorted(values, values, right=True), present)
        if descending:
            first, last = present - last, present - first
        first, last = torch.where(there, first, place), torch.where(there, last, place + 1)
        return self.to_origin(first), self.to_origin(last)

    def with_certain(self, scores: Tensor, p: Tensor, descending: bool) -> Tensor:
        """P completed: infinite scores are certain of their rows, and the absent ones go last."""
        first, last = (v.unsqueeze(-2) for v in self.ranges(descending))
        place = torch.arange(p.shape[-2], device=p.device).unsqueeze(-1)
        hard = ((place >= first) & (place < last)).to(p.dtype) / (last - first)
        p = torch.where(scores.isfinite().unsqueeze(-2), p, hard)
        return p if self.spoiled is None else torch.where(self.spoiled.unsqueeze(-1), math.nan, p)


def sort_rows(scores: Tensor) -> SortedRows:
    """Sorts the last axis, stably."""
    return rows_of(*sort(scores.detach()))


def rows_of(values: Tensor, order: Tensor) -> SortedRows:
    """The same from rows that are in ascending order already, NaN last."""
    if at_hand(values):
        most = values[..., [0, -1]].abs().amax().item() if values.numel() else 0.0
        if math.isfinite(most):
            return SortedRows(values, order, None, None, None, most)
    n = values.shape[-1]
    absent = (values == -math.inf).sum(-1, keepdim=True)
    spoiled = values[..., -1:].isnan()
    turn = (torch.arange(n, device=values.device) + absent) % n  # the absent ones came first
    values, order = values.gather(-1, turn), order.gather(-1, turn)
    finite = values.isfinite().sum(-1, keepdim=True)
    return SortedRows(values, order, finite, n - absent, spoiled)


def ties(values: Tensor) -> tuple[Tensor, Tensor]:
    """The places [first, last) that every one of the ascending values shares with its equals."""
    place = torch.arange(values.shape[-1], device=values.device).expand(values.shape)
    rises = values[..., 1:] != values[..., :-1]
    ends = torch.ones_like(values[..., :1], dtype=torch.bool)
    first = torch.where(torch.cat([ends, rises], -1), place, 0).cummax(-1).values
    behind = torch.where(torch.cat([rises, ends], -1), place + 1, values.shape[-1])
    return first, behind.flip(-1).cummin(-1).values.flip(-1)


def sums_before(ordered: Tensor, first: Tensor, last: Tensor) -> tuple[Tensor, Tensor]:
    """Σ of what is in order, before these places."""
    upto = torch.cat([torch.zeros_like(ordered[..., :1]), ordered.cumsum(-1)], -1)
    return upto.gather(-1, first), upto.gather(-1, last)


def ascending(t: Tensor) -> Tensor:
    """t, which ascends but for roundings, without those."""
    return t + (t.detach().cummax(-1).values - t.detach()).nan_to_num(0.0)
