"""Fused kernels in eager mode, as differentiable functions of the scores.

First derivatives come from the kernel's vector-Jacobian product. Second ones come from the plain
path, which is told as a function of the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _check


class Operator(NamedTuple):
    """A fused kernel: its result comes first, then what its vector-Jacobian product needs."""

    forward: Callable[..., Any]
    vjp: Callable[..., Tensor]


def usable(temperature: Tensor) -> bool:
    """Whether fused kernels may run now: a temperature that learns needs the plain path."""
    return _check.eager() and not (temperature.requires_grad and torch.is_grad_enabled())


def run(
    operator: Operator,
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    plain: Callable[[Tensor], Tensor],
) -> Tensor:
    """The operator's result, differentiable in the scores; `plain` computes the same."""
    if torch.is_grad_enabled() and scores.requires_grad:
        return _apply(scores, temperature, descending, operator, plain)
    return operator.forward(scores, temperature, descending)[0]


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        temperature: Tensor,
        descending: bool,
        operator: Operator,
        plain: Callable[[Tensor], Tensor],
    ) -> Tensor:
        found = operator.forward(scores, temperature, descending)
        ctx.kind = type(found)
        ctx.statics = descending, operator, plain
        ctx.save_for_backward(scores, temperature, *found[1:])
        return found[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, temperature, *saved = ctx.saved_tensors
        descending, operator, plain = ctx.statics
        if torch.is_grad_enabled() or not (_check.eager() and _check.plain(upstream)):
            _check.dense("the gradient", upstream)
            with torch.enable_grad():
                result = plain(scores)
                (gradient,) = torch.autograd.grad(
                    result, scores, upstream.to(result.dtype), create_graph=True
                )
        else:
            gradient = operator.vjp(upstream, ctx.kind(upstream, *saved), temperature, descending)
        return gradient, None, None, None, None


# Function.apply without its preparations for torch.func, which is not at work in eager mode.
_apply = super(torch.autograd.Function, _Fused).apply
