"""Fused kernels as differentiable functions of the scores, and of the temperature where they can.

First derivatives come from the kernel's vector-Jacobian product, in eager mode and under
torch.compile alike. Second ones come from the plain path, which is told as a function of both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels._operators import Fused, as_tuple

Plain = Callable[[Tensor, Tensor], Tensor]


def run(
    kernel: Fused,
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    plain: Plain,
    *options: Any,
    tensors: tuple[Tensor, ...] = (),
) -> Tensor:
    """The kernel's result; where it cannot run, `plain(scores, temperature)`, which is the same."""
    if not kernel.serves(scores, temperature, *options, tensors=tensors):
        return plain(scores, temperature)
    learns = torch.is_grad_enabled() and (scores.requires_grad or temperature.requires_grad)
    if learns and temperature.requires_grad:
        temperature = temperature.to(scores.device).expand(kernel.rows_of(scores, *tensors))
    if _check.eager():
        if learns:
            return _apply(scores, temperature, tensors, descending, kernel, plain, options)
        found = kernel.forward.here(scores, temperature, *tensors, descending, *options)
        return as_tuple(found)[0]
    return as_tuple(kernel.forward(scores, temperature, *tensors, descending, *options))[0]


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        temperature: Tensor,
        tensors: tuple[Tensor, ...],
        descending: bool,
        kernel: Fused,
        plain: Plain,
        options: tuple[Any, ...],
    ) -> Tensor:
        found = as_tuple(kernel.forward.here(scores, temperature, *tensors, descending, *options))
        ctx.statics = descending, kernel, plain, options
        kept = scores, temperature, *kernel.keep(scores, found, *tensors, *options)
        ctx.save_for_backward(*kept)
        ctx.like = [(value.shape, value.dtype) for value in kept]
        return found[0]

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        _check.unpacked(saved, ctx.like)
        scores, temperature, *kept = saved
        descending, kernel, plain, options = ctx.statics
        wanted = ctx.needs_input_grad[:2]
        if torch.is_grad_enabled() or not (_check.eager() and kernel.takes(upstream)):
            _check.dense("the gradient", upstream)
            gradients = _plain_backward(plain, scores, temperature, wanted, upstream)
        else:
            arguments = upstream, kept, temperature, descending, wanted[1], *options
            gradients = kernel.vjp.here(*arguments)
        found = [g if w else None for g, w in zip(gradients, wanted, strict=True)]
        return *found, None, None, None, None, None


def _plain_backward(
    plain: Plain,
    scores: Tensor,
    temperature: Tensor,
    wanted: tuple[bool, ...],
    upstream: Tensor,
) -> list[Tensor | None]:
    """Differentiable once more."""
    inputs = [v for v, w in zip((scores, temperature), wanted, strict=True) if w]
    with torch.enable_grad():
        result = plain(scores, temperature)
        found = iter(
            torch.autograd.grad(result, inputs, upstream.to(result.dtype), create_graph=True)
        )
    return [next(found) if w else None for w in wanted]


# Function.apply without its preparations for torch.func, which is not at work in eager mode: the
# call of a row of 16 scores takes 18 instead of 23 µs. tests/runtime/test_private_torch.py watches.
_apply = super(torch.autograd.Function, _Fused).apply
