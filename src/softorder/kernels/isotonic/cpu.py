"""Calls of the compiled isotonic regressions."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native


def blocks(s: Tensor, w: Tensor, entropic: bool) -> Tensor:
    s, w = s.contiguous(), w.to(s.dtype).contiguous()
    first, n = torch.empty_like(s, dtype=torch.int64), s.shape[-1]
    _native.call(
        "isotonic",
        _native.pointer(s),
        _native.pointer(w),
        _native.pointer(first),
        s.numel() // max(n, 1),
        n,
        entropic,
        s.dtype is torch.float64,
        _native.threads(),
    )
    return first
