"""How chosen sets change as the noise of one score crosses a key: derivatives of their means.

Keys are u_i = x_i + σ z_i. Given all noise but z_i, a choice of the m largest changes only where
u_i crosses the m-th largest of the other keys, t: the holder j of t leaves, i enters. So

    ∂/∂x_i E[<V, y>] = E[ f((t - x_i)/σ)/σ · (<V, y with i> - <V, y with j>) ]

with the density f of the noise: an exact derivative of the mean over z_i, to be averaged over the
rest. If i is among the m largest keys, t is the next largest key of all, else the m-th.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _axis

Pdf = Callable[[Tensor], Tensor]


class Edges(NamedTuple):
    """The m-th largest keys and the next ones, and whose they are; each has one entry per row."""

    last: Tensor
    next: Tensor
    last_place: Tensor
    next_place: Tensor


def edges(keys: Tensor, m: int | Tensor) -> Edges:
    """Of every row; +inf for m = 0, and -inf after the last key."""
    n = keys.shape[-1]
    most = n if isinstance(m, Tensor) else min(m + 1, n)
    values, places = keys.topk(most, -1)
    rank = _axis.per_row(m, keys).long().expand(keys.shape[:-1]).unsqueeze(-1)
    at, after = (rank - 1).clamp(min=0), rank.clamp(max=most - 1)
    return Edges(
        torch.where(rank == 0, math.inf, values.gather(-1, at)),
        torch.where(rank == n, -math.inf, values.gather(-1, after)),
        places.gather(-1, at),
        places.gather(-1, after),
    )


class Weights(NamedTuple):
    inside: Tensor  #: which keys are among the m largest
    weight: Tensor  #: f((t - x_i)/σ)


def weights(keys: Tensor, found: Edges, x: Tensor, sigma: Tensor, pdf: Pdf) -> Weights:
    """How likely every score is to cross."""
    inside = keys >= found.last
    t = torch.where(inside, found.next, found.last)
    certain = (infinite(x) | infinite(t)).expand(keys.shape)
    z = torch.where(certain, 0.0, (t - torch.where(infinite(x), 0.0, x)) / sigma)
    return Weights(inside, torch.where(certain, 0.0, pdf(z)))


def infinite(x: Tensor) -> Tensor:
    """±inf, and the largest numbers, which stand for an infinity that takes part."""
    return x.abs() >= torch.finfo(x.dtype).max


def of_set(keys: Tensor, m: int | Tensor, x: Tensor, sigma: Tensor, V: Tensor, pdf: Pdf) -> Tensor:
    """σ ∂<V, y>/∂x for y the m largest, added over the draws on the first axis of the keys."""
    found = edges(keys, m)
    inside, weight = weights(keys, found, x, sigma, pdf)
    many = V.expand(keys.shape)
    other = torch.where(
        inside, many.gather(-1, found.next_place), many.gather(-1, found.last_place)
    )
    return (weight * (V - other)).sum(0)


def of_places(keys: Tensor, k: int, x: Tensor, sigma: Tensor, V: Tensor, pdf: Pdf) -> Tensor:
    """The same for the k largest in their order, V (..., k, n).

    Row m of this matrix is what the m largest have that the m - 1 largest have not: sums by parts.
    """
    steps = V - torch.nn.functional.pad(V, (0, 0, 0, 1))[..., 1:, :]
    total = torch.zeros_like(x)
    for m in range(k):
        total += of_set(keys, m + 1, x, sigma, steps[..., m, :], pdf)
    return total


def of_positions(keys: Tensor, k: int, x: Tensor, sigma: Tensor, V: Tensor, pdf: Pdf) -> Tensor:
    """The same for the k largest in the order of their positions in the row, V (..., k, n).

    When i takes the place of j, what lies between them moves by one row. With the chosen positions
    c_1 < ... < c_k, prefix sums of V_{m,c_m}, V_{m-1,c_m} and V_{m+1,c_m} tell what that changes.
    """
    found = edges(keys, k)
    inside, weight = weights(keys, found, x, sigma, pdf)
    count = inside.long().cumsum(-1)  # how many are chosen up to here
    own = torch.arange(keys.shape[-1], device=keys.device).expand(keys.shape)
    # i enters for the last one, or leaves for the next one
    enters = torch.where(inside, found.next_place, own)
    leaves = torch.where(inside, count, count.gather(-1, found.last_place))
    before = torch.where(inside, count.gather(-1, found.next_place), count)
    change = _Swap(V, keys.topk(k, -1).indices.sort(-1).values).change(enters, leaves, before)
    return (weight * torch.where(inside, -change, change)).sum(0)


class _Swap:
    """<V, Y> of the chosen positions, as one of them is replaced."""

    def __init__(self, V: Tensor, chosen: Tensor) -> None:
        self.k, self.n = V.shape[-2:]
        self.flat = V.flatten(-2).expand(*chosen.shape[:-1], -1)
        rows = torch.arange(self.k, device=V.device)
        self.stay, self.down, self.up = (
            torch.nn.functional.pad(self._entries(rows + move, chosen).cumsum(-1), (1, 0))
            for move in (0, -1, 1)
        )

    def _entries(self, rows: Tensor, positions: Tensor) -> Tensor:
        """V at rows, from 0, and positions; anything for rows that are not there."""
        return self.flat.gather(-1, rows.clamp(0, self.k - 1) * self.n + positions)

    def change(self, enters: Tensor, leaves: Tensor, before: Tensor) -> Tensor:
        """Without the one in row `leaves`, counted from 1; `before` are chosen up to the new one.

        If that is behind it, the rows between move down by one, else up.
        """
        behind = before >= leaves
        low = torch.where(behind, leaves, before)  # rows low + 1 ... high move
        high = torch.where(behind, before, leaves - 1)
        moved = torch.where(behind, _between(self.down, low, high), _between(self.up, low, high))
        gone = _between(self.stay, low - behind.long(), high + (~behind).long())
        entered = self._entries(torch.where(behind, before - 1, before), enters)
        return moved + entered - gone


def _between(prefix: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The sum of the terms low + 1 ... high, counted from 1."""
    last = prefix.shape[-1] - 1
    ends = (prefix.gather(-1, end.clamp(0, last)) for end in (high, low))
    return torch.sub(*ends)
