"""The inverse map: logits u of a law with given inclusion probabilities.

Newton's method on m(u) = π from u = logit π, which is right as V = Σ π(1-π) grows. The derivative
of the inclusion probabilities of a conditional Poisson design is its covariance matrix, never
formed: products with it cost O(n), and conjugate gradients need a handful of them, since it is
nearly diagonal. Other laws of `_exponential` are near enough for its inverse to serve them too.

The root is found without derivatives. As many steps once more, with the inverse held constant, put
them back: du/dπ = m'(u)^-1, exactly for conditional Poisson with its two steps to second order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from softorder.sampling._subsets import Subsets, tilt

_TOLERANCE = 1e-13  # of log-odds, relative where these exceed 1
_STEPS = 60
_PRODUCTS = 100

Mean = Callable[[Tensor, Tensor], tuple[Tensor, Subsets]]


def fit(probs: Tensor, size: Tensor, mean: Mean) -> Tensor:
    """u with m(u) = probs and Σ σ(u) = k, in float64, ±inf for units that are certain.

    `mean` gives m(u), and the conditional Poisson law with the same u.
    """
    probs = probs.double()
    target, size = probs.detach(), size.double()
    free = (target > 0) & (target < 1)
    with torch.no_grad():
        u = tilt(torch.logit(target), size)
        error, steps = torch.full_like(target, torch.inf), 0
        while steps < _STEPS:
            now, subsets = mean(u, size)
            missing = torch.where(free, target - now, 0.0)
            before, error = error, missing.abs() / torch.where(free, target * (1 - target), 1.0)
            if error.numel() == 0 or error.max() <= _TOLERANCE or _stalled(before, error):
                break
            u = tilt(u + Inverse(subsets, free)(missing), size)
            steps += 1
    if not (probs.requires_grad and torch.is_grad_enabled()):
        return u
    inverse = Inverse(subsets, free)
    for _ in range(max(2, steps)):
        u = u + inverse(torch.where(free, probs - mean(u, size)[0], 0.0))
        u = torch.where(free, u, u.detach())
    return u


def _stalled(before: Tensor, error: Tensor) -> bool:
    """Near the limit of rounding, and no better than one step ago."""
    return bool(error.max() <= 1e-9) and bool(error.max() >= 0.5 * before.max())


class Inverse:
    """Solves Cov(x) w = v for v with Σ v = 0; w has mean 0 over the free units."""

    def __init__(self, subsets: Subsets, free: Tensor) -> None:
        self.subsets, self.free = subsets, free
        inside, outside = subsets.inclusion()
        variance = torch.where(free, inside * outside, 1.0)
        self.scale = torch.where(free, variance.reciprocal(), 0.0).detach()
        self.count = free.sum(-1, keepdim=True).clamp(min=1)

    def __call__(self, values: Tensor) -> Tensor:
        return _Solve.apply(values, self)

    def centre(self, values: Tensor) -> Tensor:
        mean = torch.where(self.free, values, 0.0).sum(-1, keepdim=True) / self.count
        return torch.where(self.free, values - mean, 0.0)

    def solve(self, values: Tensor) -> Tensor:
        """Conjugate gradients, preconditioned by the variances, all rows at once."""
        residual = self.centre(values)
        result, direction = torch.zeros_like(residual), torch.zeros_like(residual)
        power = torch.ones_like(self.count, dtype=residual.dtype)
        first = None
        for _ in range(_PRODUCTS):
            eased = self.scale * residual
            last, power = power, (residual * eased).sum(-1, keepdim=True)
            first = power if first is None else first
            going = power > 1e-30 * first
            if not going.any():
                break
            direction = eased + torch.where(going, power / last, 0.0) * direction
            pushed = torch.where(self.free, self.subsets.covariance_times(direction), 0.0)
            bend = (direction * pushed).sum(-1, keepdim=True)
            step = torch.where(going & (bend > 0), power / bend, 0.0)
            result, residual = result + step * direction, residual - step * pushed
        return self.centre(result)


class _Solve(torch.autograd.Function):
    """A symmetric linear map is its own derivative, and its own transpose."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, inverse: Inverse) -> Tensor:
        ctx.inverse = inverse
        return inverse.solve(values)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return _Solve.apply(upstream, ctx.inverse), None
