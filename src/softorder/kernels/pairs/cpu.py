"""Calls of the compiled sums over pairs."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native


def pair_sums(
    x: Tensor,
    grades: Tensor,
    own: Tensor | None,
    scores: Tensor | None,
    discount: Tensor | None,
    bound: Tensor | None,
    weighing: int,
    first: int,
    hinge: bool,
    slopes: bool,
) -> tuple[Tensor, Tensor]:
    """The sums of every row, and the gradient of the first of them."""
    found, gradient = empty(x, slopes)
    given = [
        None if value is None else value.contiguous()
        for value in (x, grades, own, scores, discount, bound)
    ]
    rows, n = x.shape
    _native.call(
        "pairs",
        *map(_native.pointer, given),
        _native.pointer(found),
        _native.pointer(gradient) if slopes else 0,
        rows,
        n,
        first,
        weighing,
        hinge,
        x.dtype is torch.float64,
        _native.threads(),
    )
    return found, gradient


def empty(x: Tensor, slopes: bool) -> tuple[Tensor, Tensor]:
    """What is found, not filled in yet."""
    found = x.new_empty(3, x.shape[0], dtype=torch.float64)
    return found, x.new_empty(x.shape if slopes else 0)
