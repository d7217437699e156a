"""log P(x) of conditional Poisson designs by one kernel, and its gradient by another."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from softorder import _check
from softorder.kernels import _native, subsets
from softorder.kernels._autograd import wanted
from softorder.kernels.subsets.circle import Subsets, tilt


def log_prob(
    logits: Tensor, size: Tensor, x: Tensor, dtype: torch.dtype | None = None
) -> Tensor | None:
    """log P(x) in float64, if there is a kernel for these, here and now.

    The logits are taken in another dtype, if one is given; the graph keeps them as they are.
    """
    shape = torch.broadcast_shapes(x.shape, logits.shape)
    if not _check.eager() or shape[len(shape) - logits.dim() :] != logits.shape:
        return None
    if not logits.numel() or not _native.serves(logits, size, x, most=_native.INT32):
        return None
    n = logits.shape[-1]
    rows = logits if logits.dim() == 2 else logits.reshape(-1, n)
    draws, sizes = x.expand(shape).reshape(-1, len(rows), n), size.reshape(-1).double()
    dtype = dtype or rows.dtype
    if logits.requires_grad and torch.is_grad_enabled():
        found = _LogProb.apply(rows, sizes, draws, dtype)
    else:
        found = subsets.log_prob(rows.to(dtype), sizes, draws.to(dtype))[0]
    return found.reshape(shape[:-1])


def formula(u: Tensor, log_mass: Tensor, size: Tensor, x: Tensor) -> Tensor:
    """Σ log σ(±u) - log P(S = k), in plain torch; u sums to k as `tilt` makes it."""
    result = logsigmoid(torch.where(x > 0, u, -u)).sum(-1) - log_mass
    return torch.where(x.sum(-1) == size, result, -torch.inf)


class _LogProb(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, size: Tensor, draws: Tensor, dtype: torch.dtype
    ) -> Tensor:
        found: Tensor
        found, *circle = subsets.log_prob(logits.to(dtype), size, draws.to(dtype))
        kept, ctx.dtype = (logits, size, draws, *circle), dtype
        ctx.save_for_backward(*kept)
        ctx.like = [(value.shape, value.dtype) for value in kept]
        return found

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        _check.unpacked(saved, ctx.like)
        logits, size, draws, *circle = saved
        if torch.is_grad_enabled() or not (_check.eager() and _check.plain(upstream)):
            with torch.enable_grad():
                u = tilt(logits, size)
                plain = formula(u, Subsets(u, size, ctx.dtype).log_mass, size, draws)
                (found,) = wanted(plain, (logits,), (True,), upstream)
        else:
            given = logits.to(ctx.dtype), size, draws.to(ctx.dtype)
            found = subsets.vjp(upstream, *given, *circle).to(logits.dtype)
        return found, None, None, None
