"""Calls of the compiled top-k: the thresholds, p, and its gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native


def forward(scores: Tensor, k: Tensor, temperature: Tensor, density: int) -> tuple[Tensor, Tensor]:
    """p, and its thresholds: centres and rests, stacked."""
    x = scores.contiguous()
    p = torch.empty_like(x)
    return p, _solve(x, k, temperature, density, _native.pointer(p), 0)


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """Thresholds, and the number of passes that they took."""
    sweeps = scores.new_empty(scores.shape[:-1], dtype=torch.int32)
    return _solve(scores.contiguous(), k, temperature, density, 0, _native.pointer(sweeps)), sweeps


def _solve(x: Tensor, k: Tensor, temperature: Tensor, density: int, p: int, sweeps: int) -> Tensor:
    """Thresholds of the last axis of float32 or float64 scores; fills p and sweeps if given."""
    *shape, n = x.shape
    b = x.new_empty(2, *shape)
    rows, centre = b.numel() // 2, _native.pointer(b)
    k, k_stride = _native.dense(k, shape)
    temperature, temperature_stride = _native.dense(temperature, shape)
    _native.call(
        "topk_forward",
        _native.pointer(x),
        _native.pointer(k),
        _native.pointer(temperature),
        p,
        centre,
        centre + rows * x.element_size(),
        sweeps,
        rows,
        n,
        k_stride,
        temperature_stride,
        density,
        x.dtype is torch.float64,
        _native.threads(),
    )
    return b


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
    where = None if index is None else index.contiguous()
    by_scores = torch.empty_like(x)
    by_row = x.new_empty(1 + by_temperature, *shape, dtype=torch.float64)
    rows, centre, by_k = b.numel() // 2, _native.pointer(b), _native.pointer(by_row)
    temperature, stride = _native.dense(temperature, shape)
    _native.call(
        "topk_backward",
        _native.pointer(x),
        _native.pointer(v),
        _native.pointer(where),
        _native.pointer(temperature),
        centre,
        centre + rows * x.element_size(),
        _native.pointer(by_scores),
        by_k,
        by_k + rows * by_row.element_size() if by_temperature else 0,
        rows,
        n,
        stride,
        density,
        x.dtype is torch.float64,
        _native.threads(),
    )
    return by_scores, by_row
