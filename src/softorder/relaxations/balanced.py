"""Doubly stochastic matrices with derivatives, from potentials without any.

With P = row softmax of A - v, A = scores/τ, and v such that columns sum to 1, the derivative of
Pᵀ1 = 1 gives dv. For upstream V let T(V) = P ⊙ (V - (P ⊙ V) 1 1ᵀ), the softmax's own product; then

    ∂L/∂A = T(V - 1 bᵀ)      L(P) b = T(V)ᵀ 1      L(P) = diag(off-diagonal sums of PᵀP) - PᵀP

with the Laplacian of kernels/balance/reference.py: O(n³), and nothing is unrolled. Groups of
columns that a cold plan holds apart have any common b; a small ridge δ chooses the smallest. Where
it matters, the links between the groups, and so the entries of P there, are below δ: the gradient
is right to δ |V|/τ.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import balance
from softorder.kernels._autograd import wanted
from softorder.kernels.balance.reference import Solution, laplacian, row_softmax

_RIDGE = 4096  # δ in units of the last place of 1
_COLDEST = 1e-15  # of the spread of the scores: colder, their rounding decides


def balanced(
    scores: Tensor, temperature: Tensor, tolerance: float, max_iterations: int
) -> tuple[Tensor, Solution]:
    """P (..., n, n), differentiable in scores and temperature, twice; and how it was found.

    Scores have the dtype of the temperature, which has one number for each matrix.
    """
    known = scores.detach().isfinite().all(-1, keepdim=True).all(-2, keepdim=True)
    x = torch.where(known, scores, 0.0)
    # P does not change, and smaller numbers lose fewer digits
    x = x - x.detach().mean(-1, keepdim=True)
    x = x - x.detach().mean(-2, keepdim=True)
    spread = x.detach().amax((-1, -2)) - x.detach().amin((-1, -2))
    temperature = torch.maximum(temperature, _COLDEST * spread)
    solution = balance.solve(x, temperature, tolerance, max_iterations)
    plan = _balanced(x, temperature, solution.potentials)
    return torch.where(known, plan, torch.nan), solution


def _balanced(scores: Tensor, temperature: Tensor, potentials: Tensor) -> Tensor:
    if not _check.eager():
        return _twice_differentiable(scores, temperature, potentials)
    if torch.is_grad_enabled() and (scores.requires_grad or temperature.requires_grad):
        return _Balanced.apply(scores, temperature, potentials)
    return row_softmax(scores, temperature, potentials)


def _twice_differentiable(scores: Tensor, temperature: Tensor, potentials: Tensor) -> Tensor:
    """Two Newton steps of value 0 put the derivatives back, as in relaxations/transport_plan.py."""
    constant = row_softmax(scores, temperature, potentials).detach()
    for _ in range(2):
        columns = row_softmax(scores, temperature, potentials).sum(-2)
        potentials = potentials + _solve(constant, columns - columns.detach())
    return row_softmax(scores, temperature, potentials)


class _Balanced(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, temperature: Tensor, potentials: Tensor) -> Tensor:
        plan = row_softmax(scores, temperature, potentials)
        ctx.save_for_backward(scores, temperature, potentials, plan)
        return plan

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, temperature, potentials, plan = ctx.saved_tensors
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                again = _twice_differentiable(scores, temperature, potentials)
            needed = ctx.needs_input_grad[:2]
            return *wanted(again, (scores, temperature), needed, upstream), None
        return *_vjp(scores, temperature, plan, upstream), None


def _vjp(
    scores: Tensor, temperature: Tensor, plan: Tensor, upstream: Tensor
) -> tuple[Tensor, Tensor]:
    """Gradients of scores and temperature."""
    b = _solve(plan, _through_softmax(plan, upstream).sum(-2))
    by_scores = _through_softmax(plan, upstream - b.unsqueeze(-2)) / temperature[..., None, None]
    return by_scores, -(by_scores * scores).sum((-1, -2)) / temperature


def _through_softmax(plan: Tensor, upstream: Tensor) -> Tensor:
    """T(V)."""
    return plan * (upstream - (plan * upstream).sum(-1, keepdim=True))


def _solve(plan: Tensor, right: Tensor) -> Tensor:
    """b with (L(P) + δ) b = right."""
    ridge = torch.full_like(right, _RIDGE * torch.finfo(plan.dtype).eps)
    factor = torch.linalg.cholesky(laplacian(plan) + torch.diag_embed(ridge))
    return torch.cholesky_solve(right.unsqueeze(-1), factor).squeeze(-1)
