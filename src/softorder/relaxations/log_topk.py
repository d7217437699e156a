"""log p of the soft top-k as one node of the graph.

First derivatives come from their formula, further ones from the plain path. With the slope of
log F, r_i = f(u_i)/F(u_i) at u_i = (x_i - b)/τ, with q = f(u)/Σf(u), upstream v and w = v ⊙ r,

    ∂L/∂x = (w - q Σw)/τ        ∂L/∂k = Σw/Σf(u)        ∂L/∂τ = -Σ_i (w_i - q_i Σw) u_i/τ

as u_i - u_j does not depend on b, and Σ F(u) = k says how b follows. q is made of log f less its
largest, so that it is right where every f(u) underflows; k would have to move b infinitely fast
there, and its derivative is taken as 0, as on the plain path.

Where no p is tiny this is the way back of soft_topk for the upstream v/p, which has a kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels import threshold
from softorder.kernels._autograd import vjp, wanted
from softorder.kernels._density_numbers import number_of
from softorder.kernels.formulas import distance, inverse

_TINY = 1e-20  # of p and p/τ: f(u)/τ and v/p are far from the ends of the range of float32, too

Plain = Callable[[Tensor, Tensor, Tensor], Tensor]


def log_topk(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density, plain: Plain
) -> Tensor:
    """log p of clean rows in eager mode; `plain` is the same with derivatives of every order."""
    rows = scores.shape[:-1]
    k, temperature = (v.expand(rows) if v.requires_grad else v for v in (k, temperature))
    found: Tensor = _LogTopK.apply(scores, k, temperature, density, plain)
    return found


class _LogTopK(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, k: Tensor, temperature: Tensor, density: Density, plain: Plain
    ) -> Tensor:
        b, _ = threshold.solve(scores, k, temperature, density)
        ctx.density, ctx.plain = density, plain
        kept = scores, k, temperature, b
        ctx.save_for_backward(*kept)
        ctx.like = [(value.shape, value.dtype) for value in kept]
        return density.anchored.log_cdf(distance(scores, b, temperature))

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        _check.dense("the gradient", upstream)
        scores, k, temperature, b = saved = ctx.saved_tensors
        _check.unpacked(saved, ctx.like)
        needed = ctx.needs_input_grad[:3]
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                again = ctx.plain(scores, k, temperature)
            return *wanted(again, (scores, k, temperature), needed, upstream), None, None
        settings = ctx.density, needed[2]
        by_scores, by_k, by_temperature = _vjp(upstream, scores, temperature, b, *settings)
        by_rows = by_k if needed[1] else None, by_temperature if needed[2] else None
        return by_scores, *by_rows, None, None


def _vjp(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: Density,
    by_temperature: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    law, u = density.anchored, distance(scores, b, temperature)
    p = law.cdf(u)
    if _check.at_hand(p) and p.numel() > 0 and _is_ordinary(p, temperature):
        settings = temperature, b, None, number_of(density), by_temperature
        by_scores, by_row = threshold.backward(upstream / p, scores, *settings)
        return by_scores, by_row[0], by_row[-1]
    live = b[0].isfinite().unsqueeze(-1) & u.isfinite()
    u = torch.where(live, u, 0.0)
    (pull,) = vjp(law.log_cdf, [u], torch.where(live, upstream, 0.0))
    share, of_k = _shares(law, u, live)
    total = pull.sum(-1, keepdim=True)
    by_scores = inverse(temperature, scores.dtype) * (pull - share * total)
    heat = -(by_scores * u).sum(-1)
    return by_scores, (total * of_k).squeeze(-1).double(), heat.double()


def _is_ordinary(p: Tensor, temperature: Tensor) -> bool:
    return p.min().item() > _TINY * max(1.0, temperature.max().item())


def _shares(law: Density, u: Tensor, live: Tensor) -> tuple[Tensor, Tensor]:
    """f(u)/Σf(u), and 1/Σf(u); both 0 where the latter has no meaning."""
    top = torch.zeros_like(u[..., :1])
    if law.logarithmic:
        log = torch.where(live, law.log_pdf(u), -math.inf)
        top = log.amax(-1, keepdim=True)
        top = torch.where(top.isfinite(), top, 0.0)
        part, least = torch.exp(log - top), 0.0
    else:
        part, least = torch.where(live, law.pdf(u), 0.0), torch.finfo(u.dtype).tiny
    total = part.sum(-1, keepdim=True)
    inverse_total = torch.where(total > least, 1 / total, 0.0)
    reach = -0.9 * math.log(torch.finfo(u.dtype).max)
    return part * inverse_total, torch.where(top > reach, torch.exp(-top), 0.0) * inverse_total
