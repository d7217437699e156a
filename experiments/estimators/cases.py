"""Losses of k-hot vectors, estimators of their gradients, and the true gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import estimators
from softorder.distributions import KHot

Loss = Callable[[Tensor], Tensor]
LOSSES = ("linear", "quadratic", "curved")


class Problem(NamedTuple):
    """The logits of a law, and losses of what is drawn from it; the same for all estimators."""

    theta: Tensor
    losses: dict[str, Loss]


def problem(n: int) -> Problem:
    generator = torch.Generator().manual_seed(0)
    theta = torch.randn(n, generator=generator, dtype=torch.float64)
    target = torch.rand(n, generator=generator, dtype=torch.float64)
    mixing = torch.randn(n, n, generator=generator, dtype=torch.float64) / math.sqrt(n)
    losses: dict[str, Loss] = {
        "linear": lambda x: x @ target,
        "quadratic": lambda x: (x - target).square().sum(-1),
        "curved": lambda x: torch.tanh(x @ mixing).square().sum(-1),
    }
    return Problem(theta, losses)


class Case(NamedTuple):
    """Who estimates, and of which law: a design, and a density if it is not the design's own."""

    estimator: Callable[..., Tensor]
    design: str
    density: str | None = None

    def law(self, k: int, theta: Tensor) -> KHot:
        return KHot(k, logits=theta, design=self.design, method=self.density)


_relaxed = estimators.relaxed
CASES = {
    "straight_through": Case(estimators.straight_through, "conditional_poisson", "logistic"),
    "second_order": Case(estimators.second_order, "conditional_poisson", "logistic"),
    "simple": Case(estimators.simple, "conditional_poisson"),
    "score_function": Case(estimators.score_function, "conditional_poisson"),
    "score_function, no baseline": Case(
        partial(estimators.score_function, baseline=False), "conditional_poisson"
    ),
    "relaxed, τ = 1": Case(_relaxed, "gumbel_topk"),
    "relaxed, τ = 0.3": Case(partial(_relaxed, temperature=0.3), "gumbel_topk"),
    "relaxed, τ = 0.3, hard": Case(partial(_relaxed, temperature=0.3, hard=True), "gumbel_topk"),
}


def exact(case: Case, k: int, theta: Tensor, loss: Loss) -> Tensor:
    """The gradient of Σ P(x) f(x) over all subsets."""
    theta = theta.clone().requires_grad_()
    law = case.law(k, theta)
    x = law.enumerate_support()
    log_prob = _successive(theta, x) if case.design == "gumbel_topk" else law.log_prob(x)
    return torch.autograd.grad((log_prob.exp() * loss(x)).sum(), theta)[0]


def _successive(theta: Tensor, x: Tensor) -> Tensor:
    """log P of Gumbel top-k: the sum over the orders in which a subset can be drawn."""
    k = int(x[0].sum())
    orders = torch.tensor(list(permutations(range(k))))
    units = x.nonzero()[:, 1].reshape(-1, k)[:, orders]  # subsets, orders, places
    weight = theta.exp()[units]
    left = theta.exp().sum() - weight.cumsum(-1) + weight
    return (weight.log() - left.log()).sum(-1).logsumexp(-1)
