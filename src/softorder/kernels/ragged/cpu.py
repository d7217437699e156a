"""Calls of the compiled kernels with rows of different lengths: nothing is copied or padded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels._layout import FORMATS
from softorder.kernels.formulas import exact
from softorder.kernels.fsum import cpu as sums
from softorder.kernels.order import cpu as order
from softorder.kernels.placement import cpu as placement


def forward(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """p, and its thresholds: centres and rests, stacked."""
    scores = scores.contiguous()
    p = torch.empty_like(scores)
    return p, _solve(scores, offsets, k, temperature, density, p)


def solve(scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int) -> Tensor:
    """The thresholds alone."""
    return _solve(scores.contiguous(), offsets, k, temperature, density, None)


def _solve(
    x: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int, p: Tensor | None
) -> Tensor:
    rows = offsets.shape[0] - 1
    b = x.new_empty((2, rows), dtype=exact(x.dtype))
    k, k_stride = _native.dense(k, (rows,))
    temperature, temperature_stride = _native.dense(temperature, (rows,))
    centre = _native.pointer(b)
    _native.call(
        "topk_forward",
        _native.pointer(x),
        _native.pointer(k),
        _native.pointer(temperature),
        _native.pointer(p),
        centre,
        centre + rows * b.element_size(),
        0,
        0,
        0,
        _native.pointer(offsets),
        rows,
        0,
        k_stride,
        temperature_stride,
        density,
        FORMATS[x.dtype],
        _native.threads(),
    )
    return b


def backward(
    upstream: Tensor,
    scores: Tensor,
    offsets: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked."""
    rows, scores = offsets.shape[0] - 1, scores.contiguous()
    upstream, by_scores = upstream.to(scores.dtype).contiguous(), torch.empty_like(scores)
    by_row = b.new_empty((1 + by_temperature, rows), dtype=torch.float64)
    temperature, stride = _native.dense(temperature, (rows,))
    centre, by_k = _native.pointer(b), _native.pointer(by_row)
    _native.call(
        "topk_backward",
        _native.pointer(scores),
        _native.pointer(upstream),
        0,
        _native.pointer(temperature),
        centre,
        centre + rows * b.element_size(),
        _native.pointer(by_scores),
        by_k,
        by_k + rows * by_row.element_size() if by_temperature else 0,
        0,
        0,
        _native.pointer(offsets),
        rows,
        0,
        stride,
        density,
        FORMATS[scores.dtype],
        _native.threads(),
    )
    return by_scores, by_row


def sort(scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in ascending order, and where in its row every score came from."""
    scores = scores.contiguous()
    values, order = torch.empty_like(scores), torch.empty_like(scores, dtype=torch.int64)
    _native.call(
        "sort",
        _native.pointer(scores),
        _native.pointer(values),
        _native.pointer(order),
        _native.pointer(offsets),
        offsets.shape[0] - 1,
        0,
        FORMATS[scores.dtype],
        _native.threads(),
    )
    return values, order


def fsum(*arguments: Any) -> Tensor:
    """The operator has the offsets among its tensors, the kernel behind all of them."""
    tensors, offsets, options = arguments[:8], arguments[8:10], arguments[10:]
    return sums.fsum(*tensors, *options, *offsets)


def invert(*arguments: Any) -> tuple[Tensor, Tensor]:
    tensors, offsets, options = arguments[:4], arguments[4:6], arguments[6:]
    return sums.invert(*tensors, *options, *offsets)


def rank(
    scores: Tensor, temperature: Tensor, offsets: Tensor, descending: bool, density: int
) -> tuple[Tensor, Tensor, Tensor]:
    return order.rank(scores, temperature, descending, density, offsets)


def sorted_scores(
    scores: Tensor, temperature: Tensor, offsets: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    return order.sort(scores, temperature, descending, density, offsets)


def losses(
    scores: Tensor,
    temperature: Tensor,
    offsets: Tensor,
    first: Tensor,
    last: Tensor,
    descending: bool,
    density: int,
) -> tuple[Tensor, ...]:
    return placement.losses(scores, temperature, first, last, descending, density, offsets)


def _vjp_of(kernel: str) -> Callable[..., tuple[Tensor, Tensor]]:
    def vjp(upstream: Tensor, kept: Sequence[Tensor], *settings: Any) -> tuple[Tensor, Tensor]:
        _, *found, offsets = kept
        return order.gradients(kernel, upstream, found, *settings, offsets=offsets)

    return vjp


rank_vjp = _vjp_of("soft_rank_backward")
sort_vjp = _vjp_of("soft_sort_backward")


def losses_vjp(upstream: Tensor, kept: Sequence[Tensor], *settings: Any) -> tuple[Tensor, Tensor]:
    *found, offsets, first, last = kept
    return placement.vjp(upstream, (*found, first, last), *settings, offsets=offsets)
