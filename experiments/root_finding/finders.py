"""Root finding as the k-hot paper describes it, counted by iterations.

    Σ_i σ(x_i + c) = k

Newton's and Halley's steps are kept from diverging by a bisection at their side: of the two, the
one with the smaller error is taken.
"""

from __future__ import annotations

import torch
from torch import Tensor

_SATURATED = 37.0  #: σ(37) is 1 in float64


class Problem:
    """Scores x (rows, n) and k (rows,), with the error of a shift c (rows,) and its derivatives."""

    def __init__(self, x: Tensor, k: Tensor) -> None:
        self.x, self.k = x, k

    def error(self, c: Tensor) -> Tensor:
        return torch.sigmoid(self.x + c.unsqueeze(-1)).sum(-1) - self.k

    def derivatives(self, c: Tensor) -> tuple[Tensor, Tensor]:
        p = torch.sigmoid(self.x + c.unsqueeze(-1))
        slope = p * (1 - p)
        return slope.sum(-1), (slope * (1 - 2 * p)).sum(-1)

    def guess(self, name: str) -> Tensor:
        """Where to start."""
        if name == "zero":
            return torch.zeros_like(self.k)
        n = self.x.shape[-1]
        if name == "logit":
            return torch.logit(self.k / n) - self.x.mean(-1)
        if name == "quantile":
            place = (n - self.k).round().long().clamp(0, n - 1).unsqueeze(-1)
            return -self.x.sort(-1).values.gather(-1, place).squeeze(-1)
        return self.better(self.guess("logit"), self.guess("quantile"))

    def better(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.where(self.error(a).abs() <= self.error(b).abs(), a, b)


def find(
    problem: Problem, step: str, guess: str, tolerance: float, most: int
) -> tuple[Tensor, int]:
    """The shifts, and how many iterations it took until every row was within the tolerance."""
    high = problem.x.abs().amax(-1) + _SATURATED
    low = -high
    c = problem.guess(guess)
    for iteration in range(most):
        error = problem.error(c)
        if error.abs().max() <= tolerance:
            return c, iteration
        low, high = torch.where(error < 0, c, low), torch.where(error > 0, c, high)
        middle = (low + high) / 2
        c = (
            middle
            if step == "bisection"
            else problem.better(_step(problem, c, error, step), middle)
        )
    return c, most


def _step(problem: Problem, c: Tensor, error: Tensor, step: str) -> Tensor:
    first, second = problem.derivatives(c)
    if step == "newton":
        return c - error / first
    return c - 2 * error * first / (2 * first.square() - error * second)
