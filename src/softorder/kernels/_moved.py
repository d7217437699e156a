"""Entries of rows in another place, whose graph keeps where they came from, and nothing else.

torch's gather keeps what it reads, of which its derivative asks for no entry but the shape, and an
index of 64 bits, where 32 say where an entry of a row came from.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check

_INT32 = torch.iinfo(torch.int32).max


def taken(values: Tensor, index: Tensor) -> Tensor:
    """values.gather(-1, index)."""
    if learns(values):
        found: Tensor = _Taken.apply(values, index)
        return found
    return values.gather(-1, index)


def moved(values: Tensor, order: Tensor, kept: Tensor, back: bool) -> Tensor:
    """Whole rows in another order, or back at their places: each is the derivative of the other.

    `order` is a permutation of every row, and so is `kept`, the same for the graph.
    """
    if learns(values):
        found: Tensor = _Moved.apply(values, order, kept, back)
        return found
    return _move(values, order, back)


def learns(values: Tensor) -> bool:
    """Whether a graph is to keep how they move; torch.func and the compiler have their own."""
    return values.requires_grad and torch.is_grad_enabled() and _check.eager()


def narrow(order: Tensor) -> Tensor:
    """Indices of a row in as few bits as they need."""
    return order.int() if order.shape[-1] <= _INT32 else order


def _move(values: Tensor, order: Tensor, back: bool) -> Tensor:
    if back:
        return torch.empty_like(values).scatter(-1, order, values)
    return values.gather(-1, order)


class _Taken(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.shape = values.shape
        return values.gather(-1, index)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        return upstream.new_zeros(ctx.shape).scatter_add(-1, index, upstream), None


class _Moved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, order: Tensor, kept: Tensor, back: bool) -> Tensor:
        ctx.save_for_backward(kept)
        ctx.back = back
        return _move(values, order, back)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        (kept,) = ctx.saved_tensors
        return moved(upstream, kept.long(), kept, not ctx.back), None, None, None
