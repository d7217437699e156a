"""What the Triton F-sums are given, and the tiles in which they take it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels._triton import interpreted, per_row, power_of_two, processors

SPLIT = 2**15  #: rows of so many sources are split, where they are few
INTERPRETED = 2**13  #: entries of a tile there, where a program takes its time, whatever its size
#: so many for each kernel: more would spill registers, see `softorder gpu`
SCAN, SCAN_MOMENTS, TREE, AT_TARGETS = 512, 256, 512, 512


class Tile(NamedTuple):
    """The entries that a program holds at a time, and how many warps it has."""

    height: int  # rows
    width: int  # entries of each, a power of two
    warps: int

    def grid(self, rows: int, n: int) -> tuple[int, int]:
        return -(-rows // self.height), -(-n // self.width)


def tile(n: int, most: int) -> Tile:
    """Short rows share a program of one warp; of longer ones it takes `most` entries at a time."""
    width = min(max(power_of_two(n), 16), most)
    return Tile(max(64 // width, 1), width, min(max(width // 128, 1), 8))


def sized(rows: int, n: int, most: int) -> Tile:
    """The same; where they are interpreted, one that takes many rows."""
    if not interpreted():
        return tile(n, most)
    width = min(max(power_of_two(n), 16), INTERPRETED)
    height = power_of_two(rows) if n <= width else 1
    return Tile(min(height, INTERPRETED // width), width, 1)


class Sources(NamedTuple):
    """Sorted rows of sources, dense; what is missing is said, and its tensor is some other."""

    x: Tensor
    rest: Tensor
    weights: Tensor
    temperature: Tensor
    taken: Tensor  # how many count
    temperature_stride: int
    count_stride: int
    has_rest: bool
    weighted: bool
    counted: bool

    @staticmethod
    def of(
        sources: Tensor,
        rest: Tensor | None,
        weights: Tensor | None,
        temperature: Tensor,
        count: Tensor | None,
    ) -> Sources:
        x = sources.contiguous()
        heat, heat_stride = per_row(temperature, x)
        taken, taken_stride = (heat, 0) if count is None else per_row(count, x)
        return Sources(
            x,
            x if rest is None else rest.contiguous(),
            x if weights is None else weights.contiguous(),
            heat,
            taken,
            heat_stride,
            taken_stride,
            rest is not None,
            weights is not None,
            count is not None,
        )

    @property
    def rows(self) -> int:
        return self.x.numel() // self.m

    @property
    def m(self) -> int:
        return self.x.shape[-1]

    @property
    def steps(self) -> int:
        """Halvings of a search among them."""
        return self.m.bit_length()

    def sized(self, n: int, most: int) -> Tile:
        return sized(self.rows, n, most)


class Targets(NamedTuple):
    """Sorted rows of targets, likewise."""

    t: Tensor
    rest: Tensor
    taken: Tensor  # how many are wanted
    count_stride: int
    has_rest: bool
    counted: bool

    @staticmethod
    def of(targets: Tensor, rest: Tensor | None, count: Tensor | None, x: Sources) -> Targets:
        t = targets.contiguous()
        taken, stride = (x.temperature, 0) if count is None else per_row(count, x.x)
        beside = t if rest is None else rest.contiguous()
        return Targets(t, beside, taken, stride, rest is not None, count is not None)

    @property
    def n(self) -> int:
        return self.t.shape[-1]


def same(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two tensors are the same memory seen in the same way."""
    if a is None or b is None:
        return a is b
    return a.is_set_to(b)


def pieces_of(rows: int, m: int, size: Tile, device: torch.device) -> int:
    """How many programs share a row: more than one where the rows are long and few."""
    busy = processors(device)
    if m < SPLIT or rows >= busy:
        return 1
    return min(2 * busy // rows, -(-m // (2 * size.width)), 1024)


def piece_of(m: int, pieces: int, size: Tile) -> int:
    return -(-m // (pieces * size.width)) * size.width


def levels_of(levels: Tensor, x: Sources) -> tuple[Tensor, int]:
    """One row of levels for all, where it was expanded, or one for each; and the stride."""
    n, levels = levels.shape[-1], levels.to(x.x.device)
    if any(levels.stride()[:-1]):
        return levels.contiguous(), n
    return levels[(0,) * (levels.dim() - 1)].contiguous(), 0
