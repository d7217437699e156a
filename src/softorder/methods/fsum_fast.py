"""The fast path of eager mode: compiled kernels that sort, sum and put back in one go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels import fsum_fused

Composed = Callable[[Tensor], Tensor]


class Kernel(NamedTuple):
    """An operator, whose first result is what the user wants, and its vector-Jacobian product."""

    forward: Callable[..., tuple[Tensor, ...]]
    vjp: Callable[..., Tensor]


RANK = Kernel(fsum_fused.rank, fsum_fused.rank_vjp)
SORT = Kernel(fsum_fused.sort, fsum_fused.sort_vjp)


def serves(scores: Tensor, temperature: Tensor, density: Density) -> bool:
    """Whether there is a kernel for this call. None differentiates by temperature."""
    learned = temperature.requires_grad and torch.is_grad_enabled()
    return not learned and _check.eager() and fsum_fused.serves(scores, density)


def apply(
    kernel: Kernel, scores: Tensor, temperature: Tensor, descending: bool, composed: Composed
) -> Tensor:
    """The result of a kernel; `composed` computes the same, with every derivative."""
    if scores.requires_grad and torch.is_grad_enabled():
        result: Tensor = _Fast.apply(scores, temperature, descending, kernel, composed)
        return result
    return kernel.forward(scores, temperature, descending)[0]


class _Fast(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        temperature: Tensor,
        descending: bool,
        kernel: Kernel,
        composed: Composed,
    ) -> Tensor:
        result = kernel.forward(scores, temperature, descending)
        ctx.save_for_backward(scores, temperature, *result[1:])
        ctx.saved_as, ctx.descending = type(result), descending
        ctx.kernel, ctx.composed = kernel, composed
        return result[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, temperature, *saved = ctx.saved_tensors
        if torch.is_grad_enabled() or not _check.eager():
            gradient = _replayed(ctx.composed, scores, upstream)
        else:
            result = ctx.saved_as(upstream, *saved)  # the first place is not needed any more
            gradient = ctx.kernel.vjp(upstream, result, temperature, ctx.descending)
        return gradient, None, None, None, None


def _replayed(composed: Composed, scores: Tensor, upstream: Tensor) -> Tensor:
    """The gradient with derivatives of its own, from the composed operator."""
    with torch.enable_grad():
        result = composed(scores)
        (gradient,) = torch.autograd.grad(result, scores, upstream, create_graph=True)
    return gradient
