"""Formulas whose graph would keep many times their inputs: the way back computes them once more.

Only the inputs are kept. That is worth it where the formula costs little beside the memory that it
would hold: a handful of elementwise steps, of which autograd keeps nearly every one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softorder import _check

Formula = Callable[..., Tensor]


def recomputed(formula: Formula, *inputs: Tensor | None) -> Tensor:
    """formula(*inputs), with derivatives of every order.

    All tensors that the formula reads are among the inputs, constants too: what it holds beside
    them would be kept, and nobody would see it. torch.compile has its own way of choosing what to
    keep, and torch.func and forward mode want the formula itself.
    """
    learns = any(value is not None and value.requires_grad for value in inputs)
    if learns and torch.is_grad_enabled() and _check.eager():
        found: Tensor = _Recomputed.apply(formula, *inputs)
        return found
    return formula(*inputs)


class _Recomputed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, formula: Formula, *inputs: Tensor | None) -> Tensor:
        ctx.formula = formula
        ctx.save_for_backward(*inputs)
        ctx.like = [None if v is None else (v.shape, v.dtype) for v in inputs]
        return formula(*(_alone(value, False) for value in inputs))

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        _check.dense("the gradient", upstream)
        inputs, needed = ctx.saved_tensors, ctx.needs_input_grad[1:]
        _unpacked(inputs, ctx.like)
        graph = torch.is_grad_enabled()
        with torch.enable_grad():
            inputs = tuple(map(_own if graph else _alone, inputs, needed))
            result = ctx.formula(*inputs)
        wanted = [value for value, need in zip(inputs, needed, strict=True) if need]
        options: dict[str, Any] = {"create_graph": graph, "materialize_grads": True}
        found = iter(torch.autograd.grad(result, wanted, upstream, **options))
        return None, *(next(found) if need else None for need in needed)


def _own(value: Tensor | None, needed: bool) -> Tensor | None:
    """With its graph; one input may be made from another, but to the formula they are two."""
    return value.view_as(value) if needed and value is not None else value


def _alone(value: Tensor | None, needed: bool) -> Tensor | None:
    return value if value is None else value.detach().requires_grad_(needed)


def _unpacked(inputs: tuple[Tensor | None, ...], like: list[Any]) -> None:
    pairs = [(value, kind) for value, kind in zip(inputs, like, strict=True) if value is not None]
    _check.unpacked(*map(list, zip(*pairs, strict=True)))
