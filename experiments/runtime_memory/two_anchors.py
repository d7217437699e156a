"""SOFT top-k as published (Xie et al. 2020): 200 Sinkhorn iterations on two anchors.

The iterations and algorithm 4 are those of the sorted operator, `benchmarks.providers`; here the
anchors are 0, where k/n of the mass goes, and 1. The result is p_i = n Γ_i0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from benchmarks.cases import Case
from benchmarks.providers import Operator, Provider
from benchmarks.providers.paper_sinkhorn import ITERATIONS, gradient_by_cost, iterate


class _TopK(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, k: int, epsilon: float) -> Tensor:
        n, anchors = scores.shape[-1], scores.new_tensor([0.0, 1.0])
        nu = scores.new_tensor([k / n, 1 - k / n])
        cost = (scores.unsqueeze(-1) + anchors) ** 2  # of -scores: the largest go to 0
        plan = iterate(cost, nu, epsilon, ITERATIONS, error=0.0)
        ctx.save_for_backward(scores, anchors, plan, nu)
        ctx.epsilon = epsilon
        return n * plan[..., 0]

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, anchors, plan, nu = ctx.saved_tensors
        by_plan = torch.nn.functional.pad(scores.shape[-1] * upstream[0].unsqueeze(-1), (0, 1))
        by_cost = gradient_by_cost(plan, nu, by_plan, ctx.epsilon)
        return (2 * (scores.unsqueeze(-1) + anchors) * by_cost).sum(-1), None, None


def _bind(case: Case) -> Operator:
    return lambda scores: _TopK.apply(scores, case.k, case.temperature)


provider = Provider("soft-200", f"{ITERATIONS} Sinkhorn iterations", _bind)
