from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from softorder.densities.base import Density


class Logistic(Density):
    """F(u) = 1/(1 + e^-u), the sigmoid.

    The same p is known as sigmoid top-k (k-hot sampling) and, with τ = ε/2, as the entropic
    optimal transport of SOFT top-k (Xie et al. 2020). ψ(p) = p log p + (1-p) log(1-p).

    >>> import torch, softorder as so
    >>> so.soft_topk(torch.tensor([2.0, 1.0, 0.0]), 1, method="logistic")
    tensor([0.5491, 0.3094, 0.1415])
    """

    name = "logistic"
    smoothness = "smooth"
    good_for = "a smooth density; the operator of SOFT top-k (τ = ε/2) and of k-hot sampling"
    paper = "LapSum, section 3; top-k: k-hot sampling; SOFT top-k (Xie et al. 2020), τ = ε/2"
    aliases = ("sigmoid", "khot", "k-hot")
    logarithmic = True

    def cdf(self, u: Tensor) -> Tensor:
        return torch.sigmoid(u)

    def pdf(self, u: Tensor) -> Tensor:
        # of -|u|: near 0 the sigmoid keeps all its digits
        tail = torch.sigmoid(-u.abs())
        return tail * (1 - tail)

    def slope(self, u: Tensor) -> Tensor:
        return self.pdf(u) * (1 - 2 * torch.sigmoid(u))

    def tail(self, a: Tensor) -> Tensor:
        return torch.sigmoid(-a)

    def sides(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        side = torch.sign(u)
        tail = u.abs_().neg_().sigmoid_()
        pdf = torch.addcmul(tail, tail, tail, value=-1)
        return side, tail, pdf, torch.addcmul(pdf, pdf, tail, value=-2)

    def log_tail(self, a: Tensor) -> Tensor:
        return functional.logsigmoid(-a)

    def log_pdf(self, u: Tensor) -> Tensor:
        return functional.logsigmoid(u) + functional.logsigmoid(-u)

    def log_cdf(self, u: Tensor) -> Tensor:
        return functional.logsigmoid(u)

    def quantile(self, p: Tensor) -> Tensor:
        return torch.logit(p)

    def psi(self, p: Tensor) -> Tensor:
        return torch.xlogy(p, p) + torch.xlogy(1 - p, 1 - p)

    def conjugate(self, u: Tensor) -> Tensor:
        return -functional.logsigmoid(-u)
