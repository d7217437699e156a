"""log P(x) of Pareto sampling, whose gradient needs the same sums as it does itself.

In the names of kernels/pareto/levels.py, with w_l the weights of the levels, q_il = σ(-u_i-s_l),
p_il = 1 - q_il, and G_l = w_l Σ_{x_i=1} q_il / <c,x>, which sum to 1,

    ∂log P(x)/∂u_i = x_i - Σ_l G_l p_il - x_i Σ_l w_l p_il q_il / <c,x>
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import pareto
from softorder.kernels._autograd import wanted
from softorder.kernels.pareto.levels import Levels
from softorder.kernels.pareto.reference import formula


def weights(u: Tensor, size: Tensor, precision: torch.dtype) -> Tensor:
    """c_i."""
    learns = u.requires_grad and torch.is_grad_enabled()
    if learns or not u.numel() or not (_check.eager() and _check.plain(u, size)):
        return Levels.of(u, size, precision).weights()
    rows, sizes = _flat(u, size)
    return pareto.weights(rows, sizes, precision == torch.float64).view(u.shape)


def log_prob(u: Tensor, size: Tensor, x: Tensor, precision: torch.dtype) -> Tensor:
    """log P(x) in float64 for logits u with Σ σ(u) = k; -inf for what cannot be drawn."""
    shape = torch.broadcast_shapes(x.shape, u.shape)
    known = _check.eager() and _check.plain(u, size, x) and shape[len(shape) - u.dim() :] == u.shape
    if not known or not u.numel():
        return formula(u, size, x, Levels.of(u, size, precision).weights())[0]
    n = u.shape[-1]
    draws = x.expand(shape).reshape(-1, u.numel() // n, n)
    found: Tensor = _LogProb.apply(*_flat(u, size), draws, precision)
    return found.reshape(shape[:-1])


def _flat(u: Tensor, size: Tensor) -> tuple[Tensor, Tensor]:
    return u.reshape(-1, u.shape[-1]), size.expand(u.shape[:-1]).reshape(-1).double()


class _LogProb(torch.autograd.Function):
    """The gradient is a few more sums, instead of one through every product.

    It takes the levels once more: kept, they would be some forty numbers for each logit.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, size: Tensor, x: Tensor, precision: torch.dtype) -> Tensor:
        found, taken = pareto.log_prob(u, size, x.double(), precision == torch.float64)
        ctx.save_for_backward(u, size, x, taken)
        ctx.like = [(value.shape, value.dtype) for value in (u, size, x, taken)]
        ctx.precision = precision
        return found

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        _check.unpacked(saved, ctx.like)
        u, size, x, taken = saved
        if torch.is_grad_enabled() or not (_check.eager() and _check.plain(upstream)):
            with torch.enable_grad():
                plain = formula(u, size, x, Levels.of(u, size, ctx.precision).weights())[0]
                (found,) = wanted(plain, (u,), (True,), upstream)
        else:
            found = _gradient(upstream, u, size, x, taken, ctx.precision == torch.float64)
        return found, None, None, None


def _gradient(
    upstream: Tensor, u: Tensor, size: Tensor, x: Tensor, taken: Tensor, fine: bool
) -> Tensor:
    """Of all draws of a row at once."""
    upstream = torch.where(x.sum(-1) == size, upstream, 0.0)
    share = upstream / torch.where(taken > 0, taken, 1.0)
    drawn, shares = ((v.unsqueeze(-1) * (x > 0)).sum(0) for v in (upstream, share))
    drawn = drawn - torch.where(u > 0, upstream.sum(0).unsqueeze(-1), 0.0)
    return drawn + pareto.vjp(u, size, shares, fine)
