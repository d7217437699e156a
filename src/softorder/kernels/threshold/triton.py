"""Launches of the Triton top-k: the thresholds, p, and its gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from triton.language import float32, float64

from softorder.kernels._triton import launch, per_row
from softorder.kernels.formulas import exact, laid_out
from softorder.kernels.threshold.triton_configurations import configurations
from softorder.kernels.threshold.triton_rows import topk_backward, topk_forward
from softorder.kernels.threshold.triton_split import (
    SUMS,
    topk_gradient_pieces,
    topk_step,
    topk_sweep_pieces,
    topk_write_gradients,
    topk_write_pieces,
)
from softorder.kernels.threshold.triton_tiles import Tile, piece_of, pieces_of, room_for, sized

__all__ = ["backward", "configurations", "forward", "threshold"]

_SAMPLE = 4096  # scores of a row that is split are solved first
_ROUNDS = 3  # then so many passes are made; what they leave takes longer


def forward(
    scores: Tensor, k: Tensor, temperature: Tensor, mask: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """p, and its thresholds: centres and rests, stacked."""
    x = _filled(scores, mask, -torch.inf)
    p = torch.empty_like(x)
    b, _ = _solve(x, k, temperature, density, p)
    return laid_out(p, scores), b


def _filled(value: Tensor, mask: Tensor | None, filler: float) -> Tensor:
    """Without gaps, and with the filler where the mask is False."""
    return (value if mask is None else torch.where(mask, value, filler)).contiguous()


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """Thresholds, and the number of passes that they took."""
    return _solve(scores.contiguous(), k, temperature, density, None)


def _solve(
    x: Tensor, k: Tensor, temperature: Tensor, density: int, p: Tensor | None
) -> tuple[Tensor, Tensor]:
    *shape, n = x.shape
    b = x.new_empty(2, *shape, dtype=exact(x.dtype))
    sweeps = x.new_empty(shape, dtype=torch.int32)
    rows = sweeps.numel()
    if rows == 0 or n == 0:
        return b.fill_(torch.inf), sweeps.zero_()
    k, k_stride = per_row(k, x)
    temperature, temperature_stride = per_row(temperature, x)
    size = sized(n, rows, b.dtype, density)
    pieces = pieces_of(n, rows, size, x.device)
    if pieces > 1:
        problem = Problem(x, k, temperature, k_stride, temperature_stride, density, b, sweeps)
        _solve_in_pieces(problem, pieces, size, p)
        return b, sweeps
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


class Problem(NamedTuple):
    """What is asked of long rows, and where the answer goes."""

    x: Tensor
    k: Tensor
    temperature: Tensor
    k_stride: int
    temperature_stride: int
    density: int
    b: Tensor
    sweeps: Tensor


def _solve_in_pieces(ask: Problem, pieces: int, size: Tile, p: Tensor | None) -> None:
    x, n, rows = ask.x, ask.x.shape[-1], ask.sweeps.numel()
    solved = torch.zeros_like(ask.sweeps)
    sample = x.reshape(rows, n)[:, :: n // _SAMPLE].contiguous()
    share = sample.shape[-1] / n
    start, _ = _solve(sample, ask.k * share, ask.temperature, ask.density, None)
    place = start.double()
    ask.sweeps.fill_(1)  # the sample, and the step from it
    sums = x.new_empty(rows, SUMS.value, pieces, dtype=torch.float64)
    piece = piece_of(n, pieces, size)
    exact = float64 if ask.b.dtype is torch.float64 else float32
    for _ in range(_ROUNDS):
        launch(
            topk_sweep_pieces,
            (rows, pieces),
            x.device,
            size.warps,
            x,
            ask.temperature,
            place,
            solved,
            sums,
            rows,
            n,
            piece,
            ask.temperature_stride,
            exact,
            ask.density,
            size.width,
        )
        launch(
            topk_step,
            (rows,),
            x.device,
            4,
            sums,
            ask.k,
            ask.temperature,
            place,
            solved,
            ask.b,
            ask.sweeps,
            rows,
            n,
            pieces,
            ask.k_stride,
            ask.temperature_stride,
            ask.density,
            room_for(pieces),
        )
    launch(
        topk_forward,
        (rows,),
        x.device,
        size.warps,
        x,
        ask.k,
        ask.temperature,
        x,
        ask.b,
        ask.sweeps,
        solved,
        rows,
        n,
        ask.k_stride,
        ask.temperature_stride,
        ask.density,
        1,
        size.width,
        True,
        False,
        True,
    )
    if p is not None:
        launch(
            topk_write_pieces,
            (rows, pieces),
            x.device,
            size.warps,
            x,
            ask.temperature,
            ask.b,
            p,
            rows,
            n,
            piece,
            ask.temperature_stride,
            ask.density,
            size.width,
        )


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    mask: Tensor | None,
    density: int,
    by_temperature: bool,
    index: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked.

    With an index (int64, one per row), upstream is 0 everywhere else: one number per row.
    """
    *shape, n = scores.shape
    x = _filled(scores, mask, -torch.inf)
    v = _filled(upstream.to(scores.dtype), mask if index is None else None, 0.0)
    by_scores = torch.empty_like(x)
    by_row = x.new_empty(1 + by_temperature, *shape, dtype=torch.float64)
    rows = b.numel() // 2
    if rows == 0 or n == 0:
        return laid_out(by_scores, scores), by_row.zero_()
    temperature, stride = per_row(temperature, x)
    crowded = by_temperature or x.element_size() < 4
    size = sized(n, rows, b.dtype, density, True, crowded)
    pieces = pieces_of(n, rows, size, x.device)
    if pieces > 1:
        inputs = (v, x if index is None else index.contiguous(), x, temperature, b.contiguous())
        sums = x.new_empty(rows, 4, pieces, dtype=torch.float64)
        numbers = (
            rows,
            n,
            piece_of(n, pieces, size),
            stride,
            density,
            size.width,
            index is not None,
        )
        grid = (rows, pieces)
        launch(topk_gradient_pieces, grid, x.device, size.warps, *inputs, sums, *numbers)
        outputs = (sums, by_scores, by_row)
        rest = (by_temperature, room_for(pieces))
        launch(topk_write_gradients, grid, x.device, size.warps, *inputs, *outputs, *numbers, *rest)
        return laid_out(by_scores, scores), by_row
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
    return laid_out(by_scores, scores), by_row
