from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.densities.base import TailDensity


class Laplace(TailDensity):
    """F(-a) = e^-a / 2 for a >= 0: the Lap-Top-k of LapSum (Struski et al. 2025), our default.

    ψ(p) = s log(2s) - s with s = min(p, 1 - p).

    >>> import torch, softorder as so
    >>> so.soft_topk(torch.tensor([2.0, 1.0, 0.0]), 1, method="laplace")
    tensor([0.6453, 0.2593, 0.0954])
    """

    name = "laplace"
    smoothness = "once, f has a kink"
    good_for = "the default: fastest, weights are never exactly 0"
    paper = "LapSum (Struski et al. 2025)"
    aliases = ("lapsum", "lap-top-k", "lap_topk")
    linear = True
    logarithmic = True

    def tail(self, a: Tensor) -> Tensor:
        return 0.5 * torch.exp(-a)

    def pdf(self, u: Tensor) -> Tensor:
        return 0.5 * torch.exp(-u.abs())

    def slope(self, u: Tensor) -> Tensor:
        return -torch.sign(u) * self.pdf(u)

    def sides(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        side = torch.sign(u)
        # a denormal exponential takes a hundred times as long as another
        lowest = math.log(2 * torch.finfo(u.dtype).tiny)
        tail = torch.threshold_(u.abs_().neg_(), lowest, -math.inf).exp_().mul_(0.5)
        return side, tail, tail, tail

    def log_tail(self, a: Tensor) -> Tensor:
        return -a - math.log(2)

    def log_pdf(self, u: Tensor) -> Tensor:
        return -u.abs() - math.log(2)

    def quantile(self, p: Tensor) -> Tensor:
        below = p < 0.5
        distance = torch.log(2 * torch.where(below, p, 1 - p))
        return torch.where(below, distance, -distance)

    def psi(self, p: Tensor) -> Tensor:
        s = torch.where(p < 0.5, p, 1 - p)
        return torch.xlogy(s, 2 * s) - s

    def conjugate(self, u: Tensor) -> Tensor:
        below = u < 0
        return torch.where(below, 0.0, u) + self.tail(torch.where(below, -u, u))
