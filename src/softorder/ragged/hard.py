"""The limits of temperature to zero, on rows of different lengths.

Rows are sorted once, and everything else are sums over segments: nothing is padded, and no device
is waited for.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder import hard as limits
from softorder.kernels.ragged import Bucket, Segments, sorted_rows
from softorder.ops._interpolation import INTERPOLATIONS, interpolated
from softorder.ragged._rows import Rows


def topk(
    values: Tensor,
    offsets: Tensor,
    k: float | Tensor,
    *,
    largest: bool = True,
    mask: Tensor | None = None,
) -> Tensor:
    """`so.hard.topk` of every row: 1 for its k largest scores, 0 for the others.

    The arguments are those of `so.ragged.soft_topk`, without method and temperature.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([3.0, 1.0, 2.0, 1.0, 7.0]), torch.tensor([0, 4, 5])
    >>> so.ragged.hard.topk(values, offsets, 3)
    tensor([1.0000, 0.5000, 1.0000, 0.5000, 1.0000])
    """
    _check.flag("largest", largest)
    _check.ragged.rows(values, offsets, mask)
    rows = Rows.checked(values if largest else -values, offsets, mask)
    _check.k_below(k, rows.columns, -1)
    x, row = _sorted(rows)
    if not x.shape[0]:
        return values.detach().clone()
    k = rows.number(k).expand(rows.count).detach()
    place = row.length - k.ceil().long().clamp(min=1).minimum(row.length.clamp(min=1))
    edge = row.segments.spread(row.at(place))
    above, level = (x > edge).double(), (x == edge).double()
    count, ties = row.segments.add_up(above), row.segments.add_up(level)
    share = row.segments.spread(((k - count) / ties).clamp(0, 1))
    p = torch.where(above > 0, 1.0, torch.where((level > 0) & (x > -math.inf), share, 0.0))
    return row.spoil(p).to(values.dtype)


def rank(
    values: Tensor, offsets: Tensor, *, descending: bool = False, mask: Tensor | None = None
) -> Tensor:
    """`so.hard.rank` of every row: places from 1, which equal scores share.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([0.3, 2.0, -1.0, 2.0, 7.0]), torch.tensor([0, 4, 5])
    >>> so.ragged.hard.rank(values, offsets)
    tensor([2.0000, 3.5000, 1.0000, 3.5000, 1.0000])
    """
    _check.flag("descending", descending)
    rows = Rows.checked(values, offsets, mask)
    x, row = _sorted(rows)
    if not x.shape[0]:
        return values.detach().clone()
    segments, every = row.segments, torch.arange(x.shape[0], device=x.device)
    new = (segments.place == 0) | (row.values != row.values.roll(1))
    begin = torch.where(new, every, 0).cummax(0).values
    last = torch.where(new.roll(-1), every, x.shape[0]).flip(0).cummin(0).values.flip(0)
    last = last.clamp(max=x.shape[0] - 1)
    first = segments.spread(row.begin + row.absent)  # of the scores that take part
    ranks = (begin - first + last - first).double() / 2 + 1
    present = segments.spread(row.present).double()
    ranks = present + 1 - ranks if descending else ranks
    behind = (present + 1 + segments.spread(row.length)) / 2
    ranks = torch.where(row.values == -math.inf, behind, ranks)
    return row.spoil(torch.empty_like(ranks).index_copy(0, row.origin, ranks)).to(values.dtype)


def sort(
    values: Tensor, offsets: Tensor, *, descending: bool = False, mask: Tensor | None = None
) -> Tensor:
    """`so.hard.sort` of every row. Gradients go to the scores that stand there.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([0.3, 2.0, -1.0, 7.0, 9.0]), torch.tensor([0, 3, 5])
    >>> so.ragged.hard.sort(values, offsets, descending=True)
    tensor([ 2.0000,  0.3000, -1.0000,  9.0000,  7.0000])
    """
    _check.flag("descending", descending)
    rows = Rows.checked(values, offsets, mask)
    x, row = _sorted(rows)
    if not x.shape[0]:
        return values.clone()
    segments = row.segments
    last, absent = segments.spread(row.length) - 1, segments.spread(row.absent)
    place = last - segments.place if descending else (segments.place + absent).minimum(last)
    ordered = x[row.origin][segments.spread(row.begin) + place]
    there = segments.place < segments.spread(row.present)
    behind = -math.inf if descending else math.inf
    return row.spoil(torch.where(there, ordered, behind)).to(values.dtype)


def quantile(
    values: Tensor,
    offsets: Tensor,
    q: float | Sequence[float] | Tensor,
    *,
    mask: Tensor | None = None,
    interpolation: str = "inverse",
    weights: Tensor | None = None,
) -> Tensor:
    """`so.hard.quantile` of every row: (rows,), or (m, rows) for m of them.

    With weights (total,) rows of about the same length are padded together.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([1.0, 2.0, 4.0, 8.0, 3.0]), torch.tensor([0, 4, 5])
    >>> so.ragged.hard.quantile(values, offsets, torch.tensor([0.25, 1.0]))
    tensor([[1.5000, 3.0000],
            [8.0000, 3.0000]])
    """
    rows = Rows.checked(values, offsets, mask)
    q = _check.quantiles.as_tensor(q)
    _check.q(q, rows.columns, -1)
    _check.choice("interpolation", interpolation, INTERPOLATIONS)
    levels = _axis.leading_last(q, values)
    levels = levels.expand(rows.count, levels.shape[-1]).detach()
    if weights is not None:
        _check.quantiles.weights(weights, values, interpolation)
        found = rows.per_row(partial(_weighted, levels, weights.expand(values.shape)))
        return _axis.leading(found.to(values.dtype), q, -1, keepdim=False)
    x, row = _sorted(rows)
    if x.shape[0]:
        middle = _quantiles(row, x[row.origin], levels, interpolation)
        found = torch.where((row.present == 0) | row.spoiled, math.nan, middle.T).T
    else:
        found = x.new_full(levels.shape, math.nan)
    return _axis.leading(found.to(values.dtype), q, -1, keepdim=False)


def _quantiles(row: _SortedRows, values: Tensor, q: Tensor, interpolation: str) -> Tensor:
    """Of sorted values with their gradient."""
    n = row.present.unsqueeze(-1)

    def at(place: Tensor) -> Tensor:
        every = row.inside(place.long().T) + row.absent + row.begin
        return values[every.clamp(0, values.shape[0] - 1)].T

    if interpolation != "inverse":
        return interpolated(lambda level: at(level.floor()), q, n, interpolation)
    place = q * n
    below, above = at(place.ceil() - 1), at(place.floor())
    return torch.where(below == above, below, 0.5 * below + 0.5 * above)


def _weighted(q: Tensor, weights: Tensor, x: Tensor, part: Bucket) -> Tensor:
    levels, own = q[part.rows].movedim(-1, 0), part.pad(weights)
    return limits.quantile(x, levels, mask=part.mask, weights=own).movedim(0, -1)


class _SortedRows(NamedTuple):
    """Sorted values: first -inf, which are absent; then finite ones, +inf, NaN."""

    values: Tensor
    origin: Tensor  # where among all values each of them was
    segments: Segments
    begin: Tensor  # of every row
    length: Tensor
    absent: Tensor  # how many are -inf
    spoiled: Tensor  # whether one is NaN

    @property
    def present(self) -> Tensor:
        return self.length - self.absent

    def inside(self, place: Tensor) -> Tensor:
        """Places among those that take part, moved to the next one that there is."""
        return place.minimum(self.present - 1).clamp(min=0)

    def at(self, place: Tensor) -> Tensor:
        """The value at one place of every row; anything where there is none."""
        last = self.values.shape[0] - 1
        return self.values[(self.begin + place).clamp(0, last)]

    def spoil(self, result: Tensor) -> Tensor:
        return torch.where(self.segments.spread(self.spoiled), math.nan, result)


def _sorted(rows: Rows) -> tuple[Tensor, _SortedRows]:
    x, segments = rows.wide(), rows.segments
    values, order = sorted_rows(x, rows.offsets)
    begin, length = rows.offsets[:-1], rows.offsets.diff()
    absent = segments.add_up((values == -math.inf).double()).long()
    spoiled = segments.add_up(values.isnan().double()) > 0
    origin = order + segments.spread(begin)
    return x, _SortedRows(values, origin, segments, begin, length, absent, spoiled)
