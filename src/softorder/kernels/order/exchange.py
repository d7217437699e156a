"""Rows whose places change ranks: one all-to-all for all rows, however long the pieces are."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, distributed

from softorder.kernels.shards import Shards


def all_gather(values: Tensor, shards: Shards) -> Tensor:
    """What every rank has, (ranks, *shape): for a few numbers per row."""
    told = values.new_empty(shards.size, *values.shape)
    distributed.all_gather(list(told.unbind()), values.contiguous(), group=shards.group)
    return told


class Pieces:
    """Rows that are made of one piece for every rank, `lengths` (rows, ranks) long.

    In a row the pieces stand side by side, from its first place on. They travel one rank after
    the other, all rows of a rank together. What travels is a number for every place, or several.
    """

    def __init__(self, lengths: Tensor) -> None:
        self.lengths = lengths
        self.sizes: list[int] = lengths.sum(0).tolist()
        self.count = lengths.sum(-1, keepdim=True)
        self.width = int(self.count.max())

    def pack(self, rows: Tensor) -> Tensor:
        """Rows as they travel."""
        parcel = rows.new_empty(sum(self.sizes) + 1, *rows.shape[2:])
        parcel[self._where(rows.shape[1]).flatten()] = rows.flatten(0, 1)
        return parcel[:-1]

    def unpack(self, parcel: Tensor, width: int, beyond: float) -> Tensor:
        """Rows from what has travelled, and `beyond` behind their ends."""
        parcel = torch.cat([parcel, parcel.new_full((1, *parcel.shape[1:]), beyond)])
        return parcel[self._where(width)]

    def moved(self, starts: Tensor, width: int) -> Tensor:
        """For every place of the rows, a place elsewhere, where pieces begin at `starts`."""
        ends = self.lengths.cumsum(-1)
        place = torch.arange(width, device=ends.device).expand(len(ends), width).contiguous()
        piece = torch.searchsorted(ends, place, right=True).clamp(max=ends.shape[-1] - 1)
        return place + (starts - (ends - self.lengths)).gather(-1, piece)

    def _where(self, width: int) -> Tensor:
        """The position in the parcel of every place in the rows; behind their ends, its end."""
        travelling = self.lengths.t().flatten()
        starts = (travelling.cumsum(0) - travelling).view_as(self.lengths.t()).t()
        inside = torch.arange(width, device=starts.device) < self.count
        return torch.where(inside, self.moved(starts, width), sum(self.sizes))


@dataclass(frozen=True)
class Route:
    """The way of the places of rows to other ranks, and back."""

    lengths: Tensor  # (ranks, rows, ranks), from where to where
    outgoing: Pieces
    incoming: Pieces
    shards: Shards

    @staticmethod
    def of(lengths: Tensor, shards: Shards) -> Route:
        """For pieces (rows, ranks) that go to the ranks."""
        told, me = all_gather(lengths, shards), shards.rank
        return Route(told, Pieces(lengths), Pieces(told[..., me].t().contiguous()), shards)

    def there(self, rows: Tensor, width: int, beyond: float = 0.0) -> Tensor:
        parcel = self._exchange(self.outgoing.pack(rows), self.outgoing, self.incoming)
        return self.incoming.unpack(parcel, width, beyond)

    def back(self, rows: Tensor, width: int) -> Tensor:
        parcel = self._exchange(self.incoming.pack(rows), self.incoming, self.outgoing)
        return self.outgoing.unpack(parcel, width, 0.0)

    def _exchange(self, parcel: Tensor, sent: Pieces, received: Pieces) -> Tensor:
        arrived = parcel.new_empty(sum(received.sizes), *parcel.shape[1:])
        distributed.all_to_all_single(
            arrived, parcel, received.sizes, sent.sizes, group=self.shards.group
        )
        return arrived
