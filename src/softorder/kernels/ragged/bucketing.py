"""Rows of different lengths as a few matrices: rows of about the same length are padded together.

The rows of a matrix are longer than half of its width, so that all of them have less than twice the
elements of the rows, whatever the lengths are. How many matrices there are, and how wide they are,
the host has to know: it asks the device once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Bucket(NamedTuple):
    """Rows that are padded to one width. An empty row is there too, in the narrowest of them."""

    rows: Tensor  # which (count,)
    source: Tensor  # where their elements are (count, width); of padding, anywhere
    mask: Tensor  # what is no padding
    inside: Tensor  # its places in the flattened matrix

    @property
    def width(self) -> int:
        return self.source.shape[-1]

    def pad(self, values: Tensor) -> Tensor:
        """The rows (count, width) of values that lie one behind another."""
        if values.shape[0] == 0:  # all rows are empty
            return values.sum() + values.new_zeros(self.source.shape)
        return values[self.source]

    def of(self, number: Tensor) -> Tensor:
        """Numbers of these rows, or the one of all rows."""
        return number[self.rows] if number.dim() else number


def buckets(offsets: Tensor) -> list[Bucket]:
    """All rows, the shortest ones first.

    >>> import torch
    >>> [bucket.rows.tolist() for bucket in buckets(torch.tensor([0, 1, 8, 8, 13, 16]))]
    [[0, 2], [4], [1, 3]]
    """
    lengths, begin = offsets.diff(), offsets[:-1]
    kind = torch.log2(lengths.clamp(min=1).double()).ceil().long()
    order = torch.argsort(kind, stable=True)
    counts = torch.bincount(kind, minlength=1)
    widest = torch.zeros_like(counts).scatter_reduce(0, kind, lengths, "amax")
    found, place = [], 0
    for count, width in torch.stack([counts, widest]).T.tolist():
        if count:
            found.append(_bucket(order[place : place + count], begin, lengths, max(width, 1)))
            place += count
    return found or [_bucket(order, begin, lengths, 1)]  # no rows are a bucket, too


def _bucket(rows: Tensor, begin: Tensor, lengths: Tensor, width: int) -> Bucket:
    place = torch.arange(width, device=rows.device)
    mask = place < lengths[rows].unsqueeze(-1)
    source = torch.where(mask, begin[rows].unsqueeze(-1) + place, 0)
    return Bucket(rows, source, mask, mask.flatten().nonzero().squeeze(-1))


def per_score(results: Sequence[Tensor], parts: Sequence[Bucket]) -> Tensor:
    """Results of the padded rows, one for every score, one row behind another again."""
    found = torch.cat([r.flatten()[part.inside] for r, part in zip(results, parts, strict=True)])
    places = torch.cat([part.source.flatten()[part.inside] for part in parts])
    return torch.empty_like(found).index_copy(0, places, found)


def per_row(results: Sequence[Tensor], parts: Sequence[Bucket]) -> Tensor:
    """Results for every row, on their first axis, in the order of the rows again."""
    found = torch.cat(list(results))
    return torch.empty_like(found).index_copy(0, torch.cat([part.rows for part in parts]), found)


def own_ranks(ranks: Tensor, scores: Tensor, part: Bucket) -> Tensor:
    """The ranks of padded rows; what takes no part is last in a row that has no padding."""
    absent = part.mask & (scores == -math.inf)
    length = part.mask.sum(-1, keepdim=True)
    last = (2 * length - absent.sum(-1, keepdim=True) + 1) / 2  # the middle of their places
    return torch.where(absent & ~ranks.isnan(), last.to(ranks.dtype), ranks)


def hidden(values: Tensor, part: Bucket) -> Tensor:
    """Padded rows of scores, at -inf where they are padding."""
    return torch.where(part.mask, part.pad(values), -math.inf)
