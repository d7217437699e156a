"""Calls of the compiled kernels for Pareto sampling."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native


def weights(u: Tensor, size: Tensor, fine: bool) -> Tensor:
    """c of every unit."""
    found = torch.empty_like(u, memory_format=torch.contiguous_format)
    _forward(u, size, None, found, (None, None), fine)
    return found


def log_prob(u: Tensor, size: Tensor, draws: Tensor, fine: bool) -> tuple[Tensor, Tensor]:
    """log P of the draws, and <c,x>."""
    found = u.new_empty(draws.shape[:-1]), u.new_empty(draws.shape[:-1])
    _forward(u, size, draws.contiguous(), None, found, fine)
    return found


def _forward(
    u: Tensor,
    size: Tensor,
    draws: Tensor | None,
    weights: Tensor | None,
    found: tuple[Tensor | None, Tensor | None],
    fine: bool,
) -> None:
    u, size = u.contiguous(), size.contiguous()
    _native.call(
        "pareto_forward",
        _native.pointer(u),
        _native.pointer(size),
        _native.pointer(draws),
        _native.pointer(weights),
        *map(_native.pointer, found),
        *u.shape,
        0 if draws is None else len(draws),
        fine,
        _native.threads(),
    )


def vjp(u: Tensor, size: Tensor, shares: Tensor, fine: bool) -> Tensor:
    """What the weights pass on to the logits."""
    u, size, shares = u.contiguous(), size.contiguous(), shares.contiguous()
    gradient = torch.empty_like(u)
    given = map(_native.pointer, (u, size, shares, gradient))
    _native.call("pareto_backward", *given, *u.shape, fine, _native.threads())
    return gradient
