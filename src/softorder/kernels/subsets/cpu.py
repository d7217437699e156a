"""Calls of the compiled kernels for subsets."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels.subsets.circle import MOST_POINTS as POINTS


def log_prob(logits: Tensor, size: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """log P of the draws; and shifts, angles and weights of the circle."""
    theta, x, size = logits.contiguous(), draws.contiguous(), size.contiguous()
    count, rows, n = x.shape
    log_p = torch.empty(count, rows, dtype=torch.float64, device="cpu")
    b = theta.new_empty(2, rows)
    angle = torch.empty(rows, POINTS, dtype=torch.float64, device="cpu")
    weight = torch.empty(rows, POINTS, 2, dtype=torch.float64, device="cpu")
    _native.call(
        "subsets_forward",
        _native.pointer(theta),
        _native.pointer(size),
        _native.pointer(x),
        _native.pointer(b),
        _native.pointer(log_p),
        _native.pointer(angle),
        _native.pointer(weight),
        rows,
        n,
        count,
        POINTS,
        theta.dtype is torch.float64,
        _native.threads(),
    )
    return log_p, b, angle, weight


def vjp(
    upstream: Tensor,
    logits: Tensor,
    size: Tensor,
    draws: Tensor,
    b: Tensor,
    angle: Tensor,
    weight: Tensor,
) -> Tensor:
    """The gradient of the logits."""
    theta, x, size, v = (t.contiguous() for t in (logits, draws, size, upstream))
    b, angle, weight = b.contiguous(), angle.contiguous(), weight.contiguous()
    count, rows, n = x.shape
    out = torch.empty_like(theta)
    _native.call(
        "subsets_backward",
        _native.pointer(theta),
        _native.pointer(size),
        _native.pointer(x),
        _native.pointer(b),
        _native.pointer(angle),
        _native.pointer(weight),
        _native.pointer(v),
        _native.pointer(out),
        rows,
        n,
        count,
        POINTS,
        theta.dtype is torch.float64,
        _native.threads(),
    )
    return out
