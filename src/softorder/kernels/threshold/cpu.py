"""Calls of the compiled top-k: the thresholds, p, and its gradients.

Scores may be of any float format and lie anywhere in memory: nothing is copied.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels._layout import FORMATS, layout_of
from softorder.kernels.formulas import exact


def forward(
    scores: Tensor, k: Tensor, temperature: Tensor, mask: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """p, laid out like the scores, and its thresholds: centres and rests, stacked."""
    p = torch.empty_like(scores)
    return p, _solve(scores, k, temperature, mask, density, p, None)


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """Thresholds, and the number of passes that they took."""
    sweeps = scores.new_empty(scores.shape[:-1], dtype=torch.int32)
    return _solve(scores, k, temperature, None, density, None, sweeps), sweeps


def _solve(
    x: Tensor,
    k: Tensor,
    temperature: Tensor,
    mask: Tensor | None,
    density: int,
    p: Tensor | None,
    sweeps: Tensor | None,
) -> Tensor:
    """Thresholds of the last axis; fills p and sweeps if given."""
    *shape, n = x.shape
    b = x.new_empty((2, *shape), dtype=exact(x.dtype))
    rows, centre = b.numel() // 2, _native.pointer(b)
    k, k_stride = _native.dense(k, shape)
    temperature, temperature_stride = _native.dense(temperature, shape)
    if mask is not None and mask.shape != x.shape:
        mask = mask.expand(x.shape)
    places = layout_of(x, x if p is None else p, mask)
    _native.call(
        "topk_forward",
        _native.pointer(x),
        _native.pointer(k),
        _native.pointer(temperature),
        _native.pointer(p),
        centre,
        centre + rows * b.element_size(),
        _native.pointer(sweeps),
        _native.pointer(mask),
        places.buffer_info()[0] if places else 0,
        0,
        rows,
        n,
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
    by_scores = torch.empty_like(scores)
    by_row = b.new_empty((1 + by_temperature, *shape), dtype=torch.float64)
    rows, centre, by_k = b.numel() // 2, _native.pointer(b), _native.pointer(by_row)
    temperature, stride = _native.dense(temperature, shape)
    if index is not None:
        index, upstream = index.contiguous(), upstream.to(b.dtype).contiguous()
    elif upstream.dtype != scores.dtype:
        upstream = upstream.to(scores.dtype)
    if mask is not None and mask.shape != scores.shape:
        mask = mask.expand(scores.shape)
    places = layout_of(scores, upstream if index is None else scores, by_scores, mask)
    _native.call(
        "topk_backward",
        _native.pointer(scores),
        _native.pointer(upstream),
        _native.pointer(index),
        _native.pointer(temperature),
        centre,
        centre + rows * b.element_size(),
        _native.pointer(by_scores),
        by_k,
        by_k + rows * by_row.element_size() if by_temperature else 0,
        _native.pointer(mask),
        places.buffer_info()[0] if places else 0,
        0,
        rows,
        n,
        stride,
        density,
        FORMATS[scores.dtype],
        _native.threads(),
    )
    return by_scores, by_row
