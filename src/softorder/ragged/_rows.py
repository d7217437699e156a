"""Rows that passed the checks, and what operators of matrices make of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.kernels.ragged import Bucket, Segments, buckets, per_row, per_score

Number = float | Tensor


@dataclass(frozen=True)
class Rows:
    """Values one behind another, at -inf where they take no part; int64 offsets without gaps."""

    values: Tensor
    offsets: Tensor

    @staticmethod
    def checked(values: Tensor, offsets: Tensor, mask: Tensor | None) -> Rows:
        _check.ragged.rows(values, offsets, mask)
        if mask is not None:
            values = torch.where(mask, values, -math.inf)
        return Rows(values, offsets.long().contiguous())

    @property
    def count(self) -> int:
        return self.offsets.shape[0] - 1

    @property
    def columns(self) -> Tensor:
        """A matrix with as many rows, for checks that ask how many there are."""
        return self.offsets[:-1].unsqueeze(-1)

    @property
    def segments(self) -> Segments:
        return Segments(self.offsets, self.values.shape[0])

    @property
    def present(self) -> Tensor:
        """How many scores of every row take part."""
        return self.segments.add_up((self.values > -math.inf).double())

    def wide(self) -> Tensor:
        """The values in float32 at least."""
        return _axis.clean(self.values, None)

    def number(self, value: Number) -> Tensor:
        """One number, or one per row, as float64 beside the values."""
        found = _axis.per_row(value, self.values)
        return found.expand(self.count) if found.dim() else found

    def per_score(self, compute: Callable[[Tensor, Bucket], Tensor], *values: Tensor) -> Tensor:
        """compute(padded rows, bucket), one result for every score; of other values, if given."""
        parts = buckets(self.offsets)
        (given,) = values or (self.values,)
        return per_score([compute(part.pad(given), part) for part in parts], parts)

    def per_row(self, compute: Callable[[Tensor, Bucket], Tensor]) -> Tensor:
        """The same with results for every row, on the first axis."""
        parts = buckets(self.offsets)
        return per_row([compute(part.pad(self.values), part) for part in parts], parts)


def of(value: Number, part: Bucket) -> Number:
    """A number of the rows of a bucket, or the one of all rows."""
    if not isinstance(value, Tensor) or value.numel() == 1:
        return value.reshape(()) if isinstance(value, Tensor) else value
    return value[part.rows]
