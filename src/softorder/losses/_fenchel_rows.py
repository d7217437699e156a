"""Fenchel-Young losses of rows as one node of the graph: L = τ Σ (ψ*(u) + ψ(y) - u y).

Its gradient is p - y, p = F(u) being the soft top-k. As Σ p = Σ y = k, the threshold b in
u = (x - b)/τ drops out of first derivatives, of that of τ, too:

    ∂L/∂x = p - y        ∂L/∂τ = L/τ - Σ (p - y) u

With ψ*(u) - ψ*(-u) = u, a term is ψ*(-|u|) + ψ(y) and, where y is on the other side, |u| as well:
(1 - y)|u| for u > 0, y |u| for u < 0. Nothing of it cancels.
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
from softorder.kernels._autograd import wanted
from softorder.kernels.formulas import distance

Plain = Callable[[Tensor, Tensor], Tensor]


def rows_loss(
    x: Tensor, tau: Tensor, y: Tensor, k: Tensor, density: Density, plain: Plain
) -> Tensor:
    """L of every row, in eager mode and for a density that kernels know.

    `plain` is the same as a function of x and τ, with derivatives of every order.
    """
    tau = tau.expand(x.shape[:-1]) if tau.requires_grad else tau
    found: Tensor = _RowsLoss.apply(x, tau, y, k, density, plain)
    return found


class _RowsLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, tau: Tensor, y: Tensor, k: Tensor, density: Density, plain: Plain
    ) -> Tensor:
        b, _ = threshold.solve(x, k, tau, density)
        u = distance(x, b, tau).sub_(density.anchored.middle)
        total = _terms(density, u, y).sum(-1)
        ctx.plain = plain
        if any(ctx.needs_input_grad):
            finite = u.isfinite()
            miss = torch.where(finite, density.cdf(u) - y, 0.0)
            heat = None
            if ctx.needs_input_grad[1]:
                heat = total - (miss * torch.where(finite, u, 0.0)).sum(-1)
            ctx.save_for_backward(x, tau, miss, heat)
        return tau.to(x.dtype) * total

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, tau, miss, heat = ctx.saved_tensors
        needed = ctx.needs_input_grad[:2]
        others = None, None, None, None
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                again = ctx.plain(x, tau)
            return *wanted(again, (x, tau), needed, upstream), *others
        by_x = upstream.unsqueeze(-1) * miss if needed[0] else None
        return by_x, (upstream * heat).double() if needed[1] else None, *others


def _terms(density: Density, u: Tensor, y: Tensor) -> Tensor:
    """What is certain costs nothing, or everything; what is absent nothing."""
    side = torch.where(u > 0, 1 - y, y)  # what the target has on the other side
    a = u.abs()
    finite = a < math.inf
    a = torch.where(finite, a, 0.0)
    terms = density.conjugate(-a) + density.psi(y) + side * a
    certain = torch.where(side > 0, math.inf, 0.0)
    return torch.where(u.isnan(), math.nan, torch.where(finite, terms, certain))
