"""Calls of the compiled kernels behind kernels/ordering.py and kernels/fsum.py."""

from __future__ import annotations

import struct

import torch
from torch import Tensor

from softorder.kernels import native

# struct Sort of csrc/sort.hpp, field by field: pointers, sizes, integers.
_SORT = struct.Struct("@3P2N2i0P")

_FORMATS = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}


def sort(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The last axis in ascending order, and the indices."""
    scores = scores.contiguous()
    values = torch.empty_like(scores)
    order = torch.empty_like(scores, dtype=torch.int64)
    n = scores.shape[-1]
    native.call(
        "sort",
        _SORT.pack(
            scores.data_ptr(),
            values.data_ptr(),
            order.data_ptr(),
            scores.numel() // max(n, 1),
            n,
            _FORMATS[scores.dtype],
            native.threads(),
        ),
    )
    return values, order
