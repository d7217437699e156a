"""The tiles in which the Triton top-k takes rows, and how many programs share a long one."""

from __future__ import annotations

from typing import NamedTuple

import torch

from softorder.kernels._triton import interpreted, power_of_two, processors


class Tile(NamedTuple):
    """The scores that a program holds at a time, and how many warps it has."""

    height: int  # rows
    width: int  # scores of each, a power of two
    warps: int

    def programs(self, rows: int) -> int:
        return -(-rows // self.height)


_SHORT = 64  # so many scores: several rows in one program of one warp, which needs no barrier
_LONG = 4096  # so many float32 scores stay in the registers of 8 warps, of float64 a quarter
SPLIT = 2**15  # rows of so many scores are split, where they are few
ROOMS = (256, 1024)  # for the sums of the pieces of a row


def tile(n: int, wide: bool, density: int, gradient: bool = False, crowded: bool = False) -> Tile:
    """The tile for rows of n scores, of float64 if it is wide. Longer rows than it are streamed.

    `softorder gpu` shows that none of them spills a register. What has few sums has room for more:
    Laplace's p in float32, and the gradients, most of all if not `crowded` by that of τ or by half
    formats. With 16 warps a thread has 128 registers, of which a row of 16,384 takes 32, and its
    upstream as many.
    """
    width, size = max(power_of_two(n), 16), 1 + wide
    if width <= _SHORT:
        return Tile(max(64 // (size * width), 2 // size), width, 1)
    longest = _LONG // size**2
    more = 2 if gradient or (density == 0 and not wide) else 1
    if gradient and not (wide or crowded):
        more = 4
    if longest < width <= more * longest:
        return Tile(1, width, 16)
    width = min(width, longest)
    return Tile(1, width, min(max(width * size // 256, 1), 8))


def pieces_of(n: int, rows: int, size: Tile, device: torch.device) -> int:
    """How many programs share a row: more than one where the rows are long and few."""
    busy = processors(device)
    if n < SPLIT or rows >= busy:
        return 1
    return min(2 * busy // rows, -(-n // (2 * size.width)), ROOMS[-1])


def room_for(pieces: int) -> int:
    """For the sums of so many pieces. Two sizes are enough: every other one is compiled anew."""
    return next(size for size in ROOMS if pieces <= size)


def piece_of(n: int, pieces: int, size: Tile) -> int:
    return -(-n // (pieces * size.width)) * size.width


def sized(
    n: int,
    rows: int,
    dtype: torch.dtype,
    density: int,
    gradient: bool = False,
    crowded: bool = False,
) -> Tile:
    size = tile(n, dtype is torch.float64, density, gradient, crowded)
    if interpreted():  # there a program takes its time, whatever its size
        most = max(2**16 // size.width, 1)
        return size._replace(height=min(power_of_two(rows), most) if n < SPLIT else 1)
    return size
