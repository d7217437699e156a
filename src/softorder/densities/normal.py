from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.densities.base import TailDensity

_UNDERFLOW = 39.0  # F(-a) and f(a) are 0 from here on, in float64
# F(-a) is still a normal number here: what is less takes ten times as long, and counts as 0
_FAINT = {torch.float32: 12.9, torch.float64: 37.5}
_ASYMPTOTIC = 50.0  # from here on six terms of the series are exact in float64
_HYPERBOLA = 1e9  # and from here on the first one, for all orders of derivatives
_LOG_HEIGHT = -0.5 * math.log(2 * math.pi)


class Normal(TailDensity):
    """F(-a) = erfc(a/√2)/2, the Gaussian. ψ(p) = -f(F⁻¹(p)).

    >>> import torch, softorder as so
    >>> so.soft_topk(torch.tensor([2.0, 1.0, 0.0]), 1, method="normal")
    tensor([0.6624, 0.2806, 0.0569])
    """

    name = "normal"
    smoothness = "smooth"
    good_for = "tails that vanish quickly"
    paper = "LapSum (Struski et al. 2025), section 3"
    aliases = ("gaussian", "gauss", "probit", "erf")
    logarithmic = True

    def tail(self, a: Tensor) -> Tensor:
        # Clamped, so that no derivative meets 0·inf.
        return 0.5 * torch.erfc(a.clamp(max=_UNDERFLOW) * math.sqrt(0.5))

    def pdf(self, u: Tensor) -> Tensor:
        u = u.clamp(-_UNDERFLOW, _UNDERFLOW)
        return torch.exp(-0.5 * u * u + _LOG_HEIGHT)

    def slope(self, u: Tensor) -> Tensor:
        u = u.clamp(-_UNDERFLOW, _UNDERFLOW)
        return -u * self.pdf(u)

    def sides(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        side, most = torch.sign(u), _FAINT[u.dtype]
        a = u.abs_().clamp_(max=most)
        pdf = (a * a).mul_(-0.5).add_(_LOG_HEIGHT).exp_()
        tail = (a * math.sqrt(0.5)).erfc_().mul_(0.5)
        torch.threshold_(pdf, 1.001 * math.exp(-0.5 * most * most + _LOG_HEIGHT), 0.0)
        torch.threshold_(tail, 0.5005 * math.erfc(most * math.sqrt(0.5)), 0.0)
        return side, tail, pdf, a.mul_(pdf)

    def log_tail(self, a: Tensor) -> Tensor:
        return self.log_mills(a) + self.log_pdf(a)

    def log_pdf(self, u: Tensor) -> Tensor:
        return _LOG_HEIGHT - _half_square(u)

    def log_ratio(self, a: Tensor, nearest: Tensor) -> Tensor:
        return -(a - nearest) * (0.5 * a + 0.5 * nearest)

    def log_fall(self, a: Tensor, further: Tensor) -> Tensor:
        return self.log_mills(a) - self.log_mills(further) - self.log_ratio(further, a)

    def log_mills(self, a: Tensor) -> Tensor:
        far = a > _ASYMPTOTIC
        near = torch.where(far, _ASYMPTOTIC, a)
        scaled = torch.log(0.5 * torch.special.erfcx(near * math.sqrt(0.5))) - _LOG_HEIGHT
        distant = torch.where(far & (a < math.inf), a, _ASYMPTOTIC)
        return torch.where(far, _log_distant_mills(distant), scaled)

    def quantile(self, p: Tensor) -> Tensor:
        return torch.special.ndtri(p)

    def psi(self, p: Tensor) -> Tensor:
        return -self.pdf(self.quantile(p))

    def conjugate(self, u: Tensor) -> Tensor:
        below = u < 0
        a = torch.where(below, -u, u)
        # f(a) - a F(-a), the integral of the tail, as f(a) times what is left of 1
        scaled = a.clamp(max=_UNDERFLOW)
        mills = math.sqrt(0.5 * math.pi) * torch.special.erfcx(scaled * math.sqrt(0.5))
        return torch.where(below, 0.0, u) + self.pdf(a) * (1 - scaled * mills)


def _log_distant_mills(a: Tensor) -> Tensor:
    """For large a, by the asymptotic series of the Mills ratio, which soon is 1/a."""
    v = torch.where(a < _HYPERBOLA, 1 / a.clamp(max=_HYPERBOLA).square(), 0.0)
    series = v * (-1 + v * (3 + v * (-15 + v * (105 + v * (-945 + v * 10395)))))
    return torch.log1p(series) - torch.log(a)


def _half_square(u: Tensor) -> Tensor:
    """u²/2, also where u² overflows, with a derivative of 0 instead of inf at infinity."""
    infinite = u.isinf()
    finite = torch.where(infinite, 0.0, u)
    return torch.where(infinite, math.inf, 0.5 * finite * finite)
