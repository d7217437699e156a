"""Finding c with Σ σ(x + c) = k, by the paper's methods and by ours.

100 rows at once, in float64, until |Σ σ(x + c) - k| <= 1e-8 in every row. Of Newton's or Halley's
step and that of the bisection, the better one is taken.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import threshold

ROWS, TOLERANCE, MOST = 100, 1e-8, 60
BEYOND = 36.7  #: σ rounds to 1 there; with it bisection takes about as long as in the paper
GUESSES = ("zero", "quantile", "logit", "both")
METHODS = ("bisection", *(f"{step}, {guess}" for step in ("newton", "halley") for guess in GUESSES))

Errors = list[float]  #: of the worst row, at the start and after every iteration


def problem(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Normal scores with standard deviations from 0.1 to 5, k uniform in [1, n - 1]."""
    generator = torch.Generator().manual_seed(seed)
    spread = torch.linspace(0.1, 5, ROWS, dtype=torch.float64)
    x = spread[:, None] * torch.randn(ROWS, n, dtype=torch.float64, generator=generator)
    k = 1 + (n - 2) * torch.rand(ROWS, 1, dtype=torch.float64, generator=generator)
    return x, k


def solve(x: Tensor, k: Tensor, method: str, beyond: float = BEYOND) -> Errors:
    """By one of METHODS, between ±(max |x| + beyond)."""
    step, _, guess = method.partition(", ")
    reach = x.abs().amax(-1, keepdim=True) + beyond
    low, high = -reach, reach.clone()
    c = _guess(x, k, guess or "zero")
    errors: Errors = []
    for _ in range(MOST):
        p = torch.sigmoid(x + c)
        surplus = p.sum(-1, keepdim=True) - k
        errors.append(surplus.abs().max().item())
        if errors[-1] <= TOLERANCE:
            break
        low, high = torch.where(surplus < 0, c, low), torch.where(surplus > 0, c, high)
        c = _next(x, k, c, p, surplus, (low + high) / 2, step)
    return errors


def _next(
    x: Tensor, k: Tensor, c: Tensor, p: Tensor, surplus: Tensor, middle: Tensor, step: str
) -> Tensor:
    if step == "bisection":
        return middle
    d = p * (1 - p)
    slope = d.sum(-1, keepdim=True)
    if step == "newton":
        leap = surplus / slope
    else:
        bend = (d * (1 - 2 * p)).sum(-1, keepdim=True)
        leap = 2 * surplus * slope / (2 * slope.square() - surplus * bend)
    leap = torch.nan_to_num(c - leap)
    return _better(x, k, leap, middle)


def _better(x: Tensor, k: Tensor, a: Tensor, b: Tensor) -> Tensor:
    errors = ((torch.sigmoid(x + c).sum(-1, keepdim=True) - k).abs() for c in (a, b))
    first, second = errors
    return torch.where(first <= second, a, b)


def _guess(x: Tensor, k: Tensor, guess: str) -> Tensor:
    n = x.shape[-1]
    if guess == "zero":
        return torch.zeros_like(k)
    if guess == "logit":
        return torch.logit(k / n) - x.mean(-1, keepdim=True)
    if guess == "quantile":
        place = (n - k).long().clamp(0, n - 1)
        return -x.sort(-1).values.gather(-1, place)
    return _better(x, k, _guess(x, k, "logit"), _guess(x, k, "quantile"))


def own(x: Tensor, k: Tensor) -> threshold.Threshold:
    """softorder's solver."""
    return threshold.solve(x, k.squeeze(-1), torch.ones((), dtype=torch.float64), "logistic")


def error(x: Tensor, k: Tensor, found: threshold.Threshold) -> float:
    """|Σ σ(x + c) - k| of the worst row, for c = -b."""
    p = torch.sigmoid((x - found.centre[:, None]) - found.rest[:, None])
    return (p.sum(-1, keepdim=True) - k).abs().max().item()
