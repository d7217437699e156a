"""Derivatives by autograd, from within operators too.

An operator runs below autograd, where nothing is recorded; a thread of its own does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor


def by_autograd(function: Callable[[Tensor], Tensor], u: Tensor) -> Tensor:
    """The derivative of an elementwise function."""
    return vjp(lambda at: function(at).sum(), [u])[0]


def vjp(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], upstream: Tensor | None = None
) -> tuple[Tensor, ...]:
    """The vector-Jacobian product of a differentiable function, for every input."""
    if _recording():
        return _vjp(function, inputs, upstream)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(_vjp, function, inputs, upstream).result()


def wanted(
    result: Tensor, inputs: Sequence[Tensor], needed: Sequence[bool], upstream: Tensor
) -> tuple[Tensor | None, ...]:
    """The gradients that are needed, with derivatives of their own; None for the other inputs."""
    some = [value for value, need in zip(inputs, needed, strict=True) if need]
    found = iter(torch.autograd.grad(result, some, upstream, create_graph=True))
    return tuple(next(found) if need else None for need in needed)


def once(why: str, gradients: Sequence[Tensor | None], *by: Tensor) -> tuple[Tensor | None, ...]:
    """Gradients that depend on `by` and refuse to be differentiated once more, saying why.

    torch's once_differentiable would take them for constants where the upstream is one.
    """
    return tuple(None if g is None else _Once.apply(why, g, *by) for g in gradients)


class _Once(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, why: str, gradient: Tensor, *by: Tensor) -> Tensor:
        ctx.why = why
        return gradient.view_as(gradient)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> Any:
        raise RuntimeError(ctx.why)


def _recording() -> bool:
    with torch.enable_grad():
        return torch.zeros((), requires_grad=True).neg().requires_grad


def _vjp(
    function: Callable[..., Tensor], inputs: Sequence[Tensor], upstream: Tensor | None
) -> tuple[Tensor, ...]:
    with torch.enable_grad():
        points = [value.detach().clone().requires_grad_() for value in inputs]
        result = function(*points)
        if result.requires_grad:
            return torch.autograd.grad(result, points, upstream, materialize_grads=True)
    return tuple(torch.zeros_like(value) for value in inputs)
