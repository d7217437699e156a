"""Calls of the compiled kernels for entropic transport."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels.transport.reference import Solution


def solve(
    gains: Tensor,
    levels: Tensor,
    total: Tensor,
    temperature: Tensor,
    solver: int,
    tolerance: float,
    max_iterations: int,
    max_entries: int,
) -> Solution:
    """The thresholds of every row; all of them share the gains."""
    shape, n, thresholds = gains.shape[:-2], gains.shape[-1], levels.shape[-1]
    gains, levels = gains.contiguous(), levels.expand(*shape, thresholds).contiguous()
    total = total.expand(*shape, 1).contiguous()
    temperature, epsilon, stride = _native.placed(temperature, shape)
    centre, rest, error = (torch.empty_like(v) for v in (levels, levels, total))
    iterations = torch.empty(shape, dtype=torch.int32, device="cpu")
    _native.call(
        "transport_solve",
        _native.pointer(gains),
        _native.pointer(levels),
        _native.pointer(total),
        epsilon,
        _native.placed(tolerance, ())[1],
        _native.pointer(centre),
        _native.pointer(rest),
        _native.pointer(iterations),
        _native.pointer(error),
        math.prod(shape),
        n,
        thresholds,
        stride,
        max_iterations,
        _native.threads(),
    )
    return Solution(centre, rest, iterations, error.squeeze(-1))
