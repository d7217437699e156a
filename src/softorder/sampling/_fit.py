"""The inverse map: logits u of a law with given inclusion probabilities.

Newton's method on logit m(u) = logit π from u = logit π, which is right as V = Σ π(1-π) grows.
Log-odds are nearly linear in u, so it does not overshoot. The derivative of m is the covariance
matrix of a conditional Poisson design. Products with it cost O(n), and conjugate gradients need a
handful of them, since it is nearly diagonal; that of short rows is formed, and factored once. Other
laws of `_exponential` are near enough for its inverse to serve them too.

The root is found without derivatives. As many steps once more, with the inverse held constant, put
them back: du/dπ = m'(u)^-1, exactly for conditional Poisson with its two steps to second order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions.utils import lazy_property

from softorder import _check
from softorder.kernels._compiler import outside_graphs
from softorder.kernels.subsets.circle import Share, Subsets, tilt

_TOLERANCE = {torch.float64: 1e-13, torch.float32: 1e-9}  # of log-odds
_STEPS = 60
_PRODUCTS = 50
_FORMED = 4e6  # n³ of all rows, up to which a matrix costs less to factor than products do
_TIGHT, _LOOSE = 1e-27, 1e-9  # the latter for steps that the next one puts right
_TINY = torch.finfo(torch.float64).tiny

Mean = Callable[[Tensor, Tensor, torch.dtype], tuple[Share, Subsets]]


@outside_graphs  # how many steps it takes depends on numbers: torch.compile goes around it
def fit(probs: Tensor, size: Tensor, mean: Mean, start: Tensor | None = None) -> Tensor:
    """u with m(u) = probs and Σ σ(u) = k, in float64, ±inf for units that are certain.

    `mean` gives m(u), and the conditional Poisson law with the same u. `start` is near u.
    """
    precision = probs.dtype
    probs, size = probs.double(), size.double()
    with torch.no_grad():
        # the nearest that sum to k exactly: where all are nearly certain, rounding would matter
        u = wanted = tilt(torch.logit(probs), size)
        free = wanted.isfinite()
        if start is not None:
            u = tilt(torch.where(free, start.double(), wanted), size)
        first, last, steps = math.inf, math.inf, 0
        while steps < _STEPS:
            now, subsets = mean(u, size, precision)
            missing, error = _missing(now, subsets.inclusion, wanted, free)
            if error <= _TOLERANCE[precision] or (error <= 1e-9 and error >= last / 2):
                break  # as far as rounding lets it
            u = tilt(u + Inverse(subsets, free, uses=1).solve(missing, _LOOSE), size)
            first, steps, last = error if steps == 0 else first, steps + 1, error
    if not (probs.requires_grad and torch.is_grad_enabled()):
        return u
    again = _steps_again(first, error, steps, precision)
    inverse = Inverse(subsets, free, uses=2 * again)
    for _ in range(again):
        u = u + inverse(torch.where(free, probs - mean(u, size, precision)[0].inside, 0.0))
        u = torch.where(free, u, u.detach())
    return u


def _steps_again(first: float, last: float, steps: int, precision: torch.dtype) -> int:
    """How many steps the derivative needs, which starts from nothing, at the rate that was seen."""
    if not 0 < last < first or steps == 0:
        return max(2, steps)
    rate = math.log(last / first) / steps
    return min(_STEPS, max(2, math.ceil(math.log(_TOLERANCE[precision]) / rate)))


def _missing(now: Share, near: Share, wanted: Tensor, free: Tensor) -> tuple[Tensor, float]:
    """What is missing in log-odds, as a change of the probabilities of the law near by; the most.

    Shifted by as much as it takes for the probabilities to keep their sum.
    """
    variance = torch.where(free, near.inside * near.outside, 0.0)
    gap = torch.where(free, wanted - (now.inside.log() - now.outside.log()), 0.0)
    total = variance.sum(-1, keepdim=True)
    shift = torch.where(total > 0, (variance * gap).sum(-1, keepdim=True) / total, 0.0)
    error = float(gap.abs().max()) if gap.numel() else 0.0
    return variance * (gap - shift), error


class Inverse:
    """Solves Cov(x) w = v, for Σ v = 0; w has mean 0 if units count by their variances d.

    For other v it is P C⁺ Pᵀ with P = 1 - 1 dᵀ/Σd, a symmetric matrix.

    Args:
        uses: how often it will be asked, there and back.
    """

    def __init__(self, subsets: Subsets, free: Tensor, uses: int) -> None:
        self.subsets, self.free = subsets, free
        self.is_formed = free.numel() * free.shape[-1] ** 2 <= _FORMED * uses
        inside, outside = (v.detach() for v in subsets.inclusion)
        self.variance = torch.where(free, inside * outside, 0.0)
        self.scale = torch.where(self.variance > 0, self.variance.reciprocal(), 0.0)
        self.share = self.variance / self.variance.sum(-1, keepdim=True).clamp(min=_TINY)

    def __call__(self, values: Tensor) -> Tensor:
        return _Solve.apply(values, self)

    def solve(self, values: Tensor, least: float = _TIGHT) -> Tensor:
        values = torch.where(self.free, values, 0.0)
        values = values - self.share * values.sum(-1, keepdim=True)
        result = self._by_factors(values) if self.is_formed else self._by_products(values, least)
        return torch.where(self.free, result - (self.share * result).sum(-1, keepdim=True), 0.0)

    @lazy_property
    def _factors(self) -> tuple[Tensor, Tensor, Tensor]:
        """√(1/d) and the LU factors of (C + d dᵀ/Σd)/√(d dᵀ), which is nearly 1 and has an inverse.

        From Σ v = 0 follows dᵀw = 0, and then C w = v. Units that are certain stand alone.
        """
        root = self.scale.sqrt()
        matrix = self.subsets.covariance() + self.share.unsqueeze(-1) * self.variance.unsqueeze(-2)
        matrix = root.unsqueeze(-1) * matrix * root.unsqueeze(-2)
        alone = torch.where(root > 0, 0.0, 1.0)
        return root, *torch.linalg.lu_factor(matrix + torch.diag_embed(alone))

    def _by_factors(self, values: Tensor) -> Tensor:
        root, *factors = self._factors
        return root * torch.linalg.lu_solve(*factors, (root * values).unsqueeze(-1)).squeeze(-1)

    def _by_products(self, residual: Tensor, least: float) -> Tensor:
        """Conjugate gradients, preconditioned by the variances, all rows at once.

        They end where the square of the residual is below `least` of what it was.
        """
        result, direction = torch.zeros_like(residual), torch.zeros_like(residual)
        power = torch.ones_like(residual[..., :1])
        first = None
        for _ in range(_PRODUCTS):
            eased = self.scale * residual
            last, power = power, (residual * eased).sum(-1, keepdim=True)
            first = power if first is None else first
            going = power > least * first
            if _check.at_hand(going) and not going.any():
                break
            direction = eased + torch.where(going, power / last, 0.0) * direction
            pushed = torch.where(self.free, self.subsets.covariance_times(direction), 0.0)
            bend = (direction * pushed).sum(-1, keepdim=True)
            step = torch.where(going & (bend > 0), power / bend, 0.0)
            result, residual = result + step * direction, residual - step * pushed
        return result


class _Solve(torch.autograd.Function):
    """A symmetric linear map is its own derivative, and its own transpose."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, inverse: Inverse) -> Tensor:
        ctx.inverse = inverse
        return inverse.solve(values)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return _Solve.apply(upstream, ctx.inverse), None
