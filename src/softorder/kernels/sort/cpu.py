"""Calls of the compiled sort."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels._layout import FORMATS


def sort(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The last axis in ascending order, and the indices."""
    scores = scores.contiguous()
    values = torch.empty_like(scores)
    order = torch.empty_like(scores, dtype=torch.int64)
    n = scores.shape[-1]
    _native.call(
        "sort",
        _native.pointer(scores),
        _native.pointer(values),
        _native.pointer(order),
        0,
        scores.numel() // max(n, 1),
        n,
        FORMATS[scores.dtype],
        _native.threads(),
    )
    return values, order
