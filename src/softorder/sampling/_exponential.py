"""Laws of the form P(x) ∝ e^<u,x> <c,x> over the subsets of size k, and what can be told of them.

With c = 1 this is conditional Poisson sampling; Sampford's and Pareto's designs have other c. With
π, π_ij the marginals of the law without c, which `kernels.subsets.circle` gives, and C = <c, π>:

    P(x) = P_1(x) <c,x>/C      P(x_i = 1) = Σ_j c_j π_ij / C
    P(x_i = x_j = 1) = Re Σ_l g_l s_i s_j (<c,s> + c_i (1 - s_i) + c_j (1 - s_j)) / C     i ≠ j
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions.utils import lazy_property
from torch.nn.functional import logsigmoid

from softorder import _check
from softorder.kernels.subsets.circle import Share, Subsets, tilt
from softorder.sampling._base import Design
from softorder.sampling._fused import formula, log_prob
from softorder.sampling._mean_log import Law, mean_log


class ExponentialDesign(Design):
    """A design with logits u and weights c; a subclass gives them."""

    offers: ClassVar[tuple[str, ...]] = ("inclusion", "log_prob", "joint", "entropy", "kl")

    @abstractmethod
    def _logits(self) -> Tensor:
        """θ, up to a constant."""

    def _weights(self) -> Tensor | None:
        """c, or None for c = 1."""
        return None

    @lazy_property
    def _u(self) -> Tensor:
        return tilt(self._logits(), self.size.double())

    @lazy_property
    def _c(self) -> Tensor | None:
        return self._weights()

    @lazy_property
    def _subsets(self) -> Subsets:
        return Subsets(self._u, self.size, self._precision)

    def log_prob(self, x: Tensor) -> Tensor:
        found = log_prob(self._logits(), self.size, x)
        return self._log_prob(x) if found is None else self._weighted(found, x)

    def _log_prob(self, x: Tensor) -> Tensor:
        """The same by formulas of torch, whose derivatives are those of all orders."""
        return self._weighted(formula(self._u, self._log_mass(), self.size, x), x)

    def _weighted(self, result: Tensor, x: Tensor) -> Tensor:
        """log P(x) from that of the law without c."""
        if self._c is not None:
            # no choice: x is certain, and <c,x> and C may both be 0
            choice = self._mean_weight > 0
            taken = torch.where(choice, torch.where(x > 0, self._c, 0.0).sum(-1), 1.0)
            more = taken.log() - torch.where(choice, self._mean_weight, 1.0).log()
            result = torch.where(result > -torch.inf, result + more, result)
        return result.to(self.rows.dtype)

    def inclusion(self) -> Tensor:
        if self._c is None and self._learns:
            return self._marginals().to(self.rows.dtype)
        return self._share.inside.to(self.rows.dtype)

    def joint(self) -> Tensor:
        s, g = self._subsets.shares(), self._subsets.weight
        pairs = self._subsets.pairs(s)
        if self._c is not None:
            c = self._c.unsqueeze(-1).to(s.dtype)
            weighted = g * self._subsets.through(self._c)
            crossed = (s * weighted.unsqueeze(-2)) @ s.transpose(-1, -2)
            own = (s * (c * (1 - s) * g.unsqueeze(-2))) @ s.transpose(-1, -2)
            crossed = crossed + own + own.transpose(-1, -2)
            pairs = _divide(crossed, self._mean_weight[..., None, None], pairs)
        diagonal = torch.eye(s.shape[-2], dtype=torch.bool, device=s.device)
        result = torch.where(diagonal, self.inclusion().unsqueeze(-1), pairs.real)
        return result.to(self.rows.dtype)

    def entropy(self) -> Tensor:
        """H = -Σ π log σ(u) + (1-π) log σ(-u) + log P(S = k) + log C - E log <c,x>."""
        inside, outside = self._share
        surprise = _product(inside, self._u) + _product(outside, -self._u)
        result = self._subsets.log_mass - surprise.sum(-1) - self._mean_log_weight(self)
        return result.to(self.rows.dtype)

    def _kl(self, other: Any) -> Tensor:
        """E log P(x)/Q(x), by the same terms: Q has other u, c and C, but the mean is that of P."""
        inside, outside = self._share
        gained = _difference(inside, self._u, other._u) + _difference(outside, -self._u, -other._u)
        result = gained.sum(-1) - (self._subsets.log_mass - other._subsets.log_mass)
        result = result + self._mean_log_weight(self) - self._mean_log_weight(other)
        return torch.where(self.size == other.size, result, torch.inf).to(self.rows.dtype)

    def _mean_log_weight(self, other: ExponentialDesign) -> Tensor | float:
        """E log <c,x>/C, with c and C of another design; 0 if there is no choice, or no c."""
        if other._c is None:
            return 0.0
        law = Law(self._u, self._c, self.size, self._precision)
        mean = (torch.where(self._share.inside > 0, other._c, 0.0) * self._share.inside).sum(-1)
        total = torch.where(mean > 0, other._mean_weight, 1.0)
        return mean_log(law, other._c, mean) - torch.where(total > 0, total, 1.0).log()

    @lazy_property
    def _share(self) -> Share:
        """P(x_i = 1) and P(x_i = 0)."""
        if self._c is None:
            return self._subsets.inclusion
        total, plain = self._mean_weight.unsqueeze(-1), self._subsets.inclusion
        weighted = self._subsets.pair_sums(self._c)
        return Share(
            *(_divide(*pair) for pair in zip(weighted, (total, total), plain, strict=True))
        )

    @lazy_property
    def _mean_weight(self) -> Tensor:
        """C = <c, π>."""
        assert self._c is not None
        inside = self._marginals() if self._learns else self._subsets.inclusion.inside
        return (self._c * inside).sum(-1)

    def _marginals(self) -> Tensor:
        """π, with its derivative in closed form."""
        found: Tensor = _Inclusion.apply(self._u, self.size, self._precision)
        return found

    def _log_mass(self) -> Tensor:
        """log P(S = k)."""
        if self._learns:
            return _LogMass.apply(self._u, self.size, self._precision)
        return self._subsets.log_mass

    @property
    def _precision(self) -> torch.dtype:
        return torch.float64 if self.rows.dtype == torch.float64 else torch.float32

    @property
    def _learns(self) -> bool:
        """Whether derivatives are wanted that autograd.Functions can give."""
        return self._u.requires_grad and torch.is_grad_enabled() and _check.eager()


def _divide(weighted: Tensor, total: Tensor, plain: Tensor) -> Tensor:
    """weighted/total, or `plain` where c is 0 for all that can be drawn."""
    return torch.where(total > 0, weighted / torch.where(total > 0, total, 1.0), plain)


def _product(share: Tensor, u: Tensor) -> Tensor:
    """share · log σ(u), 0 for what never happens."""
    happens = share > 0
    return share * logsigmoid(torch.where(happens, u, 0.0))


def _difference(share: Tensor, u: Tensor, v: Tensor) -> Tensor:
    return _product(share, u) - _product(share, v)


# ---- derivatives in closed form, instead of those through every product -------------------------


def _keep(ctx: Any, u: Tensor, size: Tensor, precision: torch.dtype) -> Subsets:
    subsets = Subsets(u, size, precision)
    ctx.precision = precision
    ctx.subsets = subsets.single() if precision == torch.float32 else subsets
    ctx.save_for_backward(u, size)
    return subsets


def _kept(ctx: Any) -> Subsets:
    """The same subsets, with the graph of their formulas if a second derivative is wanted."""
    if not torch.is_grad_enabled():
        return ctx.subsets
    u, size = ctx.saved_tensors
    return Subsets(u, size, ctx.precision)


class _LogMass(torch.autograd.Function):
    """log P(S = k), whose derivative is π - p."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, size: Tensor, precision: torch.dtype) -> Tensor:
        return _keep(ctx, u, size, precision).log_mass

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        subsets = _kept(ctx)
        moved = subsets.inclusion.inside - subsets.p
        return (upstream.unsqueeze(-1) * moved).to(upstream.dtype), None, None


class _Inclusion(torch.autograd.Function):
    """π, whose derivative is Cov(x)."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, size: Tensor, precision: torch.dtype) -> Tensor:
        return _keep(ctx, u, size, precision).inclusion.inside

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        subsets = _kept(ctx)
        moved = subsets.covariance_times(upstream.to(subsets.p.dtype))
        return moved.to(upstream.dtype), None, None
