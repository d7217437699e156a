from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.densities.base import TailDensity

_FAR = 1e9  # F(-a) is 1/(πa) from here on, in float64; its own inverse may overflow


class Cauchy(TailDensity):
    """F(-a) = arctan(1/a)/π: heavy tails, gradients that do not vanish far away.

    ψ(p) = -log(sin(πp))/π, here with ψ(1/2) = 0 because ψ(0) is infinite.

    >>> import torch, softorder as so
    >>> so.soft_topk(torch.tensor([2.0, 1.0, 0.0]), 1, method="cauchy")
    tensor([0.5578, 0.2820, 0.1602])
    """

    # Beyond 1 everything is written in 1/a: no square overflows, no derivative is inf/inf.

    name = "cauchy"
    smoothness = "smooth"
    good_for = "scores far from the threshold that should still get a gradient"
    paper = "LapSum (Struski et al. 2025), section 3"
    logarithmic = True
    decay = "hyperbola"

    def tail(self, a: Tensor) -> Tensor:
        far = a > 1
        angle = torch.atan(_inward(a, far)) / math.pi
        return torch.where(far, angle, 0.5 - angle)

    def pdf(self, u: Tensor) -> Tensor:
        far = u.abs() > 1
        square = _inward(u, far) ** 2
        return torch.where(far, square, 1.0) / (math.pi * (1 + square))

    def slope(self, u: Tensor) -> Tensor:
        far = u.abs() > 1
        v = _inward(u, far)
        return torch.where(far, v * v * v, v) * (-2 / math.pi) / (1 + v * v) ** 2

    def sides(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        side, a = torch.sign(u), u.abs_()
        tail = a.reciprocal().atan_().mul_(1 / math.pi)
        inverse = (a * a).add_(1).reciprocal_()
        pdf = inverse * (1 / math.pi)
        drop = (
            a.clamp_(max=0.25 * math.sqrt(torch.finfo(u.dtype).max)).mul_(inverse).mul_(pdf).mul_(2)
        )
        return side, tail, pdf, drop

    def log_tail(self, a: Tensor) -> Tensor:
        far = a > _FAR
        near = torch.log(self.tail(torch.where(far, 1.0, a)))
        return torch.where(far, -torch.log(torch.where(far, a, 1.0)) - math.log(math.pi), near)

    def log_pdf(self, u: Tensor) -> Tensor:
        a = u.abs()
        far = a > 1
        v = _inward(a, far)
        return -2 * torch.log(torch.where(far, a, 1.0)) - torch.log1p(v * v) - math.log(math.pi)

    def quantile(self, p: Tensor) -> Tensor:
        below = p < 0.5
        distance = 1 / torch.tan(math.pi * torch.where(below, p, 1 - p))
        return torch.where(below, -distance, distance)

    def psi(self, p: Tensor) -> Tensor:
        return -torch.log(torch.sin(math.pi * p)) / math.pi

    def conjugate(self, u: Tensor) -> Tensor:
        far = u.abs() > 1
        v = _inward(u, far)
        # log(1 + u²)/2 = log |u| + log(1 + 1/u²)/2 beyond 1
        log_root = torch.log(torch.where(far, u.abs(), 1.0)) + 0.5 * torch.log1p(v * v)
        return u * self.cdf(u) - log_root / math.pi


def _inward(u: Tensor, far: Tensor) -> Tensor:
    """u, or 1/u where it is far out: never beyond 1."""
    return torch.where(far, 1 / torch.where(far, u, 1.0), torch.where(far, 0.0, u))
