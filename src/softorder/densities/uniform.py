from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.densities.base import Density


class Uniform(Density):
    """F(u) = clip(u + 1/2, 0, 1): exact zeros and ones.

    Its soft top-k is the Euclidean projection of x/τ onto the k-capped simplex.
    ψ(p) = p(p - 1)/2.

    >>> import torch, softorder as so
    >>> so.soft_topk(torch.tensor([2.0, 1.0, 0.0]), 1, method="uniform")
    tensor([1., 0., 0.])
    """

    name = "uniform"
    smoothness = "piecewise linear"
    good_for = "exact zeros and ones: the projection onto the capped simplex"
    paper = "LapSum, section 3; top-k: projection onto the capped simplex, exact 0 and 1"
    aliases = ("sparse", "sparsemax", "euclidean", "projection")
    linear = True
    decay = "none"

    def cdf(self, u: Tensor) -> Tensor:
        return self.anchored.cdf(u + 0.5)

    def pdf(self, u: Tensor) -> Tensor:
        return self.anchored.pdf(u + 0.5)

    def slope(self, u: Tensor) -> Tensor:
        return torch.zeros_like(u)

    def log_cdf(self, u: Tensor) -> Tensor:
        return self.anchored.log_cdf(u + 0.5)

    def quantile(self, p: Tensor) -> Tensor:
        return p - 0.5

    def psi(self, p: Tensor) -> Tensor:
        return 0.5 * p * (p - 1)

    def conjugate(self, u: Tensor) -> Tensor:
        p = self.cdf(u)
        return torch.where(u >= 0.5, u, 0.5 * p * p)

    @property
    def anchored(self) -> Density:
        return _UNIT


class UnitUniform(Density):
    """F(u) = clip(u, 0, 1): the uniform density with its support at [0, 1].

    For a soft top-k the shift moves b by τ/2 and changes no p. But a p near 0 is now a difference
    of a score and the threshold, with full relative accuracy, where u + 1/2 would have rounded it.
    """

    name = "uniform"
    smoothness = "piecewise linear"
    good_for = Uniform.good_for
    paper = "LapSum, section 3; top-k: projection onto the capped simplex, exact 0 and 1"
    aliases = ("sparse", "sparsemax", "euclidean", "projection")
    linear = True
    decay = "none"

    def cdf(self, u: Tensor) -> Tensor:
        # not clamp, whose derivative is 1 at the ends; NaN stays NaN
        p = torch.where(u <= 0, 0.0, torch.where(u >= 1, 1.0, u))
        return torch.where(self._inside(u), p, p.detach())

    def pdf(self, u: Tensor) -> Tensor:
        return self._inside(u).to(u.dtype)

    def _inside(self, u: Tensor) -> Tensor:
        """Where f is 1: not where rounding alone has put a score inside.

        With a whole k between two scores that are further apart than the support, those at an end
        of it would move b.
        """
        edge = 16 * torch.finfo(u.dtype).eps
        return (u > edge) & (u < 1 - edge)

    def slope(self, u: Tensor) -> Tensor:
        return torch.zeros_like(u)

    def sides(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        side, tail = (u - self.middle).sign_(), 1 - u
        torch.minimum(u, tail, out=tail).clamp_(min=0)
        square = torch.mul(tail, tail, out=u)  # f' says nothing, the spread does
        return side, tail, torch.sign(tail), square

    def log_cdf(self, u: Tensor) -> Tensor:
        outside = u <= 0
        p = torch.where(outside | (u >= 1), 1.0, u)
        return torch.where(outside, -math.inf, torch.log(p))

    def quantile(self, p: Tensor) -> Tensor:
        return p

    @property
    def middle(self) -> float:
        return 0.5


_UNIT = UnitUniform()
