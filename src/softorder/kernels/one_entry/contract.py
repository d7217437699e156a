"""log p of one entry a row for several k, and the loss of being among the first k for a random k.

    log p_y = log F(u_y)      u = (x - b)/τ      Σ_i F(u_i) = k        k = 0: a softmax
    loss = -log Σ_k share_k p_y(k)

Contract. `scores` is float32 or float64, (rows, n); `index` (rows,) is int64; `temperature` is
float64, one or one per row. Thresholds b are (len(ks), 2, rows) in the dtype of the scores, by the
conventions of kernels/threshold; for a softmax the largest score, and log Σ e^(x - that); if that
is +inf, the logarithm of how many are, which share the softmax and pass no gradient. What is
per row and k is float64, (rows, len(ks)). A loss takes shares of every k, (rows, len(ks)) or
(1, len(ks)); `apart` keeps the first of them, s, out of the mixture: the loss is then
-s log p_y - (1 - s) log Σ_k≥2. A row whose index is negative has no loss and no gradient, whatever
its scores are.

`vjp` takes the derivatives by log p of every row, `pull`, and what they are multiplied with:

    ∂L/∂x = (g r/τ) (e_y - q)    ∂L/∂τ = -(g r/τ) (u_y - <q,u>)    r = f(u_y)/F(u_y), q = f(u)/Σf(u)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native
from softorder.kernels._density_numbers import COMPILED
from softorder.kernels._operators import Operator, library
from softorder.kernels.one_entry import cpu, reference


def _fake_entries(
    scores: Tensor, index: Tensor, temperature: Tensor, ks: Sequence[int], density: int
) -> tuple[Tensor, Tensor]:
    rows = scores.shape[0]
    log_p = scores.new_empty((rows, len(ks)), dtype=torch.float64)
    return log_p, scores.new_empty((len(ks), 2, rows))


def _fake_loss(
    scores: Tensor,
    index: Tensor,
    temperature: Tensor,
    shares: Tensor,
    ks: Sequence[int],
    density: int,
    apart: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    log_p, b = _fake_entries(scores, index, temperature, ks, density)
    return log_p.new_empty(scores.shape[:1]), log_p, torch.empty_like(log_p), b


def _fake_vjp(
    upstream: Tensor, pull: Tensor, scores: Tensor, *others: Any
) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape), pull.new_empty(scores.shape[:1])


log_entries = Operator(
    "log_entries(Tensor scores, Tensor index, Tensor temperature, int[] ks, int density)"
    " -> (Tensor log_p, Tensor b)",
    reference=reference.log_entries,
    cpu=cpu.log_entries,
    compiled=lambda scores, index, temperature, ks, density: density < COMPILED,
    fake=_fake_entries,
)
loss = Operator(
    "top_k_loss(Tensor scores, Tensor index, Tensor temperature, Tensor shares, int[] ks,"
    " int density, bool apart) -> (Tensor loss, Tensor log_p, Tensor pull, Tensor b)",
    reference=reference.loss,
    cpu=cpu.loss,
    compiled=lambda scores, index, tau, shares, ks, density, apart: density < COMPILED,
    fake=_fake_loss,
)
vjp = Operator(
    "log_entries_vjp(Tensor upstream, Tensor pull, Tensor scores, Tensor index,"
    " Tensor temperature, Tensor b, int[] ks, int density, bool by_temperature)"
    " -> (Tensor grad_scores, Tensor grad_temperature)",
    reference=reference.vjp,
    cpu=cpu.vjp,
    compiled=lambda up, pull, scores, index, tau, b, ks, density, by_tau: density < COMPILED,
    fake=_fake_vjp,
)


# ---- without the operators ----------------------------------------------------------------------
#
# The loss of a small batch takes as long as a dozen calls of torch. Where all but the scores are
# numbers, one call of the kernel does what they would: it reduces the losses, too.


def serves_reduced(scores: Tensor, index: Tensor, density: int) -> bool:
    """Whether `reduced` and `reduced_vjp` may take these, here and now."""
    return (
        density < COMPILED
        and _check.eager()
        and scores.dtype in _DTYPES
        and _native.serves(scores, index, most=_native.INT32)
    )


_DTYPES = (torch.float32, torch.float64)
reduced, reduced_vjp = cpu.reduced, cpu.reduced_vjp


# ---- derivatives under torch.compile ------------------------------------------------------------


def _remember_entries(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    scores, index, temperature, *statics = inputs
    ctx.save_for_backward(scores, index, temperature, output[1])
    ctx.statics = statics


def _entries_backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    learns = ctx.needs_input_grad[2]
    one = upstream.new_ones(len(upstream))
    found = vjp.dispatched(one, upstream, *ctx.saved_tensors, *ctx.statics, learns)
    return found[0], None, found[1] if learns else None, None, None


def _remember_loss(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    scores, index, temperature, shares, ks, density, apart = inputs
    _, log_p, pull, b = output
    ctx.save_for_backward(scores, index, temperature, shares, log_p, pull, b)
    ctx.statics = ks, density, apart


def _loss_backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    scores, index, temperature, shares, log_p, pull, b = ctx.saved_tensors
    ks, density, apart = ctx.statics
    _, _, learns, weighs, *_ = ctx.needs_input_grad
    upstream = upstream.contiguous()
    by_scores, by_temperature = vjp.dispatched(
        upstream, pull, scores, index, temperature, b, ks, density, learns
    )
    weights = loss_by_shares(upstream, index, log_p, shares, apart) if weighs else None
    return by_scores, None, by_temperature if learns else None, weights, None, None, None


def loss_by_shares(
    upstream: Tensor, index: Tensor, log_p: Tensor, shares: Tensor, apart: bool
) -> Tensor:
    """The gradient of the shares, in their shape."""
    slopes = reference.by_shares(log_p, shares, apart) * upstream.unsqueeze(-1)
    slopes = torch.where((index < 0).unsqueeze(-1), 0.0, slopes)
    return slopes.sum(0, keepdim=True) if len(shares) == 1 else slopes


torch.library.register_autograd(
    "softorder::log_entries", _entries_backward, setup_context=_remember_entries, lib=library
)
torch.library.register_autograd(
    "softorder::top_k_loss", _loss_backward, setup_context=_remember_loss, lib=library
)
