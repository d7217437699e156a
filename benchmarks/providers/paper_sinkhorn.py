"""Sorted SOFT top-k as published (Xie et al. 2020): Sinkhorn's iterations, then algorithm 4.

The iterations are in the log domain, as theirs are for small ε. `bind` runs 200 of them, the
paper's number; `to_error` runs as many as a given marginal error needs.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider

ITERATIONS = 200


class _SortedTopK(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, k: int, epsilon: float, iterations: int, error: float
    ) -> Tensor:
        n, anchors = scores.shape[-1], torch.arange(k + 1, dtype=scores.dtype)
        cost = (scores.unsqueeze(-1) + anchors) ** 2  # of -scores: the largest go first
        nu = torch.ones_like(anchors) / n
        nu[-1] = 1 - k / n
        plan = iterate(cost, nu, epsilon, iterations, error)
        ctx.save_for_backward(scores, anchors, plan, nu)
        ctx.epsilon = epsilon
        return n * plan[..., :-1].mT

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, anchors, plan, nu = ctx.saved_tensors
        by_plan = torch.nn.functional.pad(scores.shape[-1] * upstream.mT, (0, 1))
        by_cost = gradient_by_cost(plan, nu, by_plan, ctx.epsilon)
        by_scores = (2 * (scores.unsqueeze(-1) + anchors) * by_cost).sum(-1)
        return by_scores, None, None, None, None


def iterate(cost: Tensor, nu: Tensor, epsilon: float, iterations: int, error: float) -> Tensor:
    n = cost.shape[-2]
    kernel, zeta = -cost / epsilon, torch.zeros_like(cost[:, :1])
    log_plan = kernel
    for turn in range(iterations):
        log_plan = torch.log_softmax(kernel + zeta, -1) - math.log(n)
        held = torch.logsumexp(log_plan, -2, keepdim=True)
        if error and turn % 10 == 0 and bool((n * (held.exp() - nu).abs()).max() <= error):
            break
        zeta = zeta + nu.log() - held
    return log_plan.exp()


def gradient_by_cost(plan: Tensor, nu: Tensor, by_plan: Tensor, epsilon: float) -> Tensor:
    """Algorithm 4, for μ = 1/n."""
    n, inner = plan.shape[-2], plan[..., :-1]
    K = torch.diag(nu[:-1]) - n * inner.mT @ inner
    G = by_plan * plan
    rows, columns = G.sum(-1, keepdim=True), G.sum(-2)[..., :-1, None]
    w = torch.linalg.solve(K, columns - n * inner.mT @ rows)
    by_xi = n * (rows - inner @ w)
    return (-G + plan * (by_xi + torch.nn.functional.pad(w.mT, (0, 1)))) / epsilon


def _bind(case: Case, iterations: int, error: float) -> Operator:
    return lambda scores: _SortedTopK.apply(
        scores.double(), case.k, case.temperature, iterations, error
    )


provider = Provider(
    "sinkhorn-200", "200 Sinkhorn iterations", lambda case: _bind(case, ITERATIONS, 0.0)
)


def to_error(error: float, most: int) -> Provider:
    name = f"Sinkhorn to {error:g}, at most {most:,} iterations"
    return Provider("sinkhorn-converged", name, lambda case: _bind(case, most, error))
