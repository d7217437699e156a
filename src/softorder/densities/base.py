"""What a density is."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor


class Density(ABC):
    """An even density f with CDF F(u) = ∫_{-∞}^u f, so that F(-u) = 1 - F(u).

    A density gives a soft top-k: p_i = F((x_i - b)/τ) with b such that Σ p_i = k. It is also the
    maximiser of <x, π> - τ Σ ψ(π_i) over {π in [0,1]^n, Σ π = k}, with ψ' = F⁻¹.

    A subclass has to give `cdf` and `pdf`, as differentiable torch of any shape. What it adds
    makes it better: `tail` and `log_tail` keep p and log p exact where F(u) is near 0, `quantile`
    gives the solver its start, `slope` lets it converge faster.

    >>> import torch, softorder as so
    >>> law = so.densities.BUILT_IN["normal"]
    >>> law.cdf(torch.tensor(0.0)), law.quantile(torch.tensor(0.5))
    (tensor(0.5000), tensor(0.))
    """

    name: str = ""
    # What the registry tells of the methods that come from it.
    smoothness: str = ""
    good_for: str = ""  #: when to take it, in a few words
    paper: str = ""
    aliases: tuple[str, ...] = ()  #: names under which people may look for it
    linear: bool = False  #: whether sums of F over n sorted scores take O(n), not O(n²)

    #: How F(-a) vanishes: like an exponential, like 1/a, or at a finite a.
    decay: str = "exponential"
    #: Whether log_tail and log_pdf are exact where tail and pdf underflow.
    logarithmic: bool = False

    @abstractmethod
    def cdf(self, u: Tensor) -> Tensor:
        """F(u)."""

    @abstractmethod
    def pdf(self, u: Tensor) -> Tensor:
        """f(u) = F'(u)."""

    def slope(self, u: Tensor) -> Tensor | None:
        """f'(u), or None when nobody told."""
        return None

    def tail(self, a: Tensor) -> Tensor:
        """F(-a) for a >= 0."""
        return self.cdf(-a)

    def sides(self, u: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        """For the kernels: sign(u), and F(-|u|), f(u), -f'(|u|) with u measured from `middle`.

        Values only, no derivatives, so that formulas may be used that need no torch.where (it is
        ten times slower than arithmetic). May overwrite u. The last may be None.
        """
        side, a = torch.sign(u), u.abs_()
        slope = self.slope(a)
        return side, self.tail(a), self.pdf(a), None if slope is None else -slope

    def log_tail(self, a: Tensor) -> Tensor:
        """log F(-a) for a >= 0."""
        return _log(self.tail(a))

    def log_pdf(self, u: Tensor) -> Tensor:
        """log f(u)."""
        return _log(self.pdf(u))

    def log_ratio(self, a: Tensor, nearest: Tensor) -> Tensor:
        """log f(a)/f(nearest), without the rounding of two large logarithms."""
        return self.log_pdf(a) - self.log_pdf(nearest)

    def log_mills(self, a: Tensor) -> Tensor:
        """log F(-a)/f(a) for a >= 0, likewise."""
        return self.log_tail(a) - self.log_pdf(a)

    def log_fall(self, a: Tensor, further: Tensor) -> Tensor:
        """log F(-a)/F(-further), likewise."""
        return self.log_tail(a) - self.log_tail(further)

    def log_cdf(self, u: Tensor) -> Tensor:
        """log F(u), never by the logarithm of a rounded F: see log_tail."""
        below = u < 0
        low, high = torch.where(below, -u, 0.0), torch.where(below, 0.0, u)
        return torch.where(below, self.log_tail(low), torch.log1p(-self.tail(high)))

    def quantile(self, p: Tensor) -> Tensor:
        """F⁻¹(p), by bisection unless there is a formula."""
        return bisect_quantile(self, p)

    def psi(self, p: Tensor) -> Tensor:
        """ψ(p) = ∫_0^p F⁻¹, the convex potential: ψ(0) = ψ(1) = 0, lowest at 1/2."""
        raise NotImplementedError(f"{self!r} has no formula for psi")

    def conjugate(self, u: Tensor) -> Tensor:
        """ψ*(u) = u F(u) - ψ(F(u)), whose derivative is F: ψ*(u) - ψ*(-u) = u."""
        # ψ'(F(u)) = u, but not where F(u) rounds to 0 or 1: the derivatives are put in by hand.
        with torch.no_grad():
            p = self.cdf(u)
            value = u * p - self.psi(p)
        move = u - u.detach()
        return value + move * p + 0.5 * move * (self.cdf(u) - p)

    @property
    def anchored(self) -> Density:
        """The law that the kernels use; see densities/uniform.py."""
        return self

    @property
    def middle(self) -> float:
        """Where F is 1/2: 0 for an even density."""
        return 0.0

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class TailDensity(Density):
    """A density that knows its tail F(-a): cdf and log_cdf follow from it."""

    def cdf(self, u: Tensor) -> Tensor:
        # Not |u|, whose derivative at 0 is 0 in torch.
        below = u < 0
        tail = self.tail(torch.where(below, -u, u))
        return torch.where(below, tail, 1 - tail)

    @abstractmethod
    def tail(self, a: Tensor) -> Tensor: ...


class UserDensity(Density):
    """Any object with cdf and pdf, used together with whatever else of a Density it has.

    A user's formula may well square u: |u| is kept where the square is finite.
    """

    def __init__(self, law: Any) -> None:
        self.law = law
        self.name = getattr(law, "name", "") or type(law).__name__

    def cdf(self, u: Tensor) -> Tensor:
        return self.law.cdf(_squarable(u))

    def pdf(self, u: Tensor) -> Tensor:
        return self.law.pdf(_squarable(u))

    def slope(self, u: Tensor) -> Tensor | None:
        return self.law.slope(_squarable(u)) if hasattr(self.law, "slope") else None

    def log_tail(self, a: Tensor) -> Tensor:
        if hasattr(self.law, "log_cdf"):
            return self.law.log_cdf(_squarable(-a))
        return super().log_tail(a)

    def log_cdf(self, u: Tensor) -> Tensor:
        if hasattr(self.law, "log_cdf"):
            return self.law.log_cdf(_squarable(u))
        return super().log_cdf(u)

    def quantile(self, p: Tensor) -> Tensor:
        return self.law.quantile(p) if hasattr(self.law, "quantile") else super().quantile(p)

    def psi(self, p: Tensor) -> Tensor:
        return self.law.psi(p) if hasattr(self.law, "psi") else super().psi(p)

    def __repr__(self) -> str:
        return repr(self.law)


def _log(p: Tensor) -> Tensor:
    """log p, with a derivative of 0 instead of inf where p is 0."""
    positive = p > 0
    return torch.where(positive, torch.log(torch.where(positive, p, 1.0)), -math.inf)


def _squarable(u: Tensor) -> Tensor:
    most = math.sqrt(torch.finfo(u.dtype).max) / 4
    return u.clamp(-most, most)


def bisect_quantile(density: Density, p: Tensor) -> Tensor:
    """F⁻¹(p) by doubling, then bisection; without a gradient."""
    with torch.no_grad():
        share = torch.minimum(p, 1 - p)
        high = torch.ones_like(share)
        for _ in range(64):
            high = torch.where(density.tail(high) > share, 2 * high, high)
        low = torch.zeros_like(high)
        for _ in range(64):
            middle = (low + high) / 2
            above = density.tail(middle) > share
            low, high = torch.where(above, middle, low), torch.where(above, high, middle)
        return torch.where(p < 0.5, -high, high)
