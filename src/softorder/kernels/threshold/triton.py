"""Launches of the Triton top-k: the thresholds, p, and its gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels._triton import interpreted, launch, per_row, power_of_two
from softorder.kernels.threshold.triton_rows import topk_backward, topk_forward


class Tile(NamedTuple):
    """The scores that a program holds at a time, and how many warps it has."""

    height: int  # rows
    width: int  # scores of each, a power of two
    warps: int

    def programs(self, rows: int) -> int:
        return -(-rows // self.height)


_SHORT = 64  # so many scores: several rows in one program of one warp, which needs no barrier
_LONGEST = {4: 4096, 8: 2048}  # scores of so many bytes that stay in registers


def tile(n: int, wide: bool) -> Tile:
    """The tile for rows of n scores, of float64 if it is wide. Longer rows than it are streamed."""
    width = max(power_of_two(n), 16)
    if width <= _SHORT:
        return Tile(256 // width, width, 1)
    width = min(width, _LONGEST[8 if wide else 4])
    return Tile(1, width, min(max(width * (2 if wide else 1) // 256, 1), 8))


def forward(scores: Tensor, k: Tensor, temperature: Tensor, density: int) -> tuple[Tensor, Tensor]:
    """p, and its thresholds: centres and rests, stacked."""
    x = scores.contiguous()
    p = torch.empty_like(x)
    b, _ = _solve(x, k, temperature, density, p)
    return p, b


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """Thresholds, and the number of passes that they took."""
    return _solve(scores.contiguous(), k, temperature, density, None)


def _solve(
    x: Tensor, k: Tensor, temperature: Tensor, density: int, p: Tensor | None
) -> tuple[Tensor, Tensor]:
    *shape, n = x.shape
    b = x.new_empty(2, *shape, dtype=_exact(x.dtype))
    sweeps = x.new_empty(shape, dtype=torch.int32)
    rows = sweeps.numel()
    if rows == 0 or n == 0:
        return b.fill_(torch.inf), sweeps.zero_()
    k, k_stride = per_row(k, x)
    temperature, temperature_stride = per_row(temperature, x)
    size = _tile(n, rows, b.dtype)
    launch(
        topk_forward,
        (size.programs(rows),),
        x.device,
        size.warps,
        x,
        k,
        temperature,
        x if p is None else p,
        b,
        sweeps,
        sweeps,
        rows,
        n,
        k_stride,
        temperature_stride,
        density,
        size.height,
        size.width,
        n > size.width,
        p is not None,
        False,
    )
    return b, sweeps


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
    index: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked.

    With an index (int64, one per row), upstream is 0 everywhere else: one number per row.
    """
    *shape, n = scores.shape
    x, v = scores.contiguous(), upstream.contiguous()
    by_scores = torch.empty_like(x)
    by_row = x.new_empty(1 + by_temperature, *shape, dtype=torch.float64)
    rows = b.numel() // 2
    if rows == 0 or n == 0:
        return by_scores, by_row.zero_()
    temperature, stride = per_row(temperature, x)
    size = _tile(n, rows, b.dtype)
    launch(
        topk_backward,
        (size.programs(rows),),
        x.device,
        size.warps,
        v,
        x if index is None else index.contiguous(),
        x,
        temperature,
        b.contiguous(),
        by_scores,
        by_row,
        rows,
        n,
        stride,
        density,
        size.height,
        size.width,
        n > size.width,
        index is not None,
        by_temperature,
    )
    return by_scores, by_row


def _exact(dtype: torch.dtype) -> torch.dtype:
    """What thresholds and sums are kept in."""
    return torch.float64 if dtype is torch.float64 else torch.float32


def _tile(n: int, rows: int, dtype: torch.dtype) -> Tile:
    size = tile(n, dtype is torch.float64)
    if interpreted():  # there a program takes its time, whatever its size
        most = max(2**16 // size.width, 1)
        return size._replace(height=min(power_of_two(rows), most))
    return size
