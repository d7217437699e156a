"""Soft ranks, sorts and permutations by the fused kernels, in eager mode, with first derivatives.

Second derivatives come from the plain path, which is told as a function of the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels import fsum_fused


class Operator(NamedTuple):
    """A fused kernel: its result comes first, then what its vector-Jacobian product needs."""

    forward: Callable[..., Any]
    vjp: Callable[..., Tensor]


RANK = Operator(fsum_fused.rank, fsum_fused.rank_vjp)
SORT = Operator(fsum_fused.sort, fsum_fused.sort_vjp)


def permutation(density: Density, k: int) -> Operator:
    """The first k rows of a permutation."""
    return Operator(
        partial(fsum_fused.permutation, density=density, k=k),
        partial(fsum_fused.permutation_vjp, density=density),
    )


def serves(scores: Tensor, temperature: Tensor, density: Density) -> bool:
    """Whether `run` can be used for ranks and sorts."""
    return _plain_values(temperature) and fsum_fused.serves(scores, density)


def serves_permutation(scores: Tensor, temperature: Tensor, density: Density) -> bool:
    """Whether `run` can be used for permutations."""
    return _plain_values(temperature) and fsum_fused.serves_permutation(scores, density)


def _plain_values(temperature: Tensor) -> bool:
    # A temperature that learns needs the plain path.
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
        return _Fused.apply(scores, temperature, descending, operator, plain)
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
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                result = plain(scores)
                (gradient,) = torch.autograd.grad(
                    result, scores, upstream.to(result.dtype), create_graph=True
                )
        else:
            gradient = operator.vjp(upstream, ctx.kind(upstream, *saved), temperature, descending)
        return gradient, None, None, None, None
