"""Sums over all k-subsets of n units, in O(n): an integral over a circle, at a handful of points.

A subset x of size k has weight e^<θ,x>. Sums over subsets are coefficients of Π (1 + e^θ_i z), but
θ may be shifted, since every subset has the same size. With u = θ - c such that p = σ(u) sums to k,

    Σ_{|x| = k} e^<u,x> = Π (1 + e^u_i) · P(S = k)          S a sum of independent Bernoulli(p_i)

and P(S = k) is about 1/sqrt(2π V), V = Σ p(1-p): the largest value of the law of S, not one far in
its tail. With M points on the circle, z_l = e^(i t_l) and t_l = 2π l/M,

    P(S = k) = (1/M) Σ_l z_l^-k φ(t_l)        φ(t) = Π (1 - p_j + p_j e^(it))

is exact for M > n, and wrong by Σ_{j≠0} P(S = k + jM) for any M: nothing, once M is a dozen
standard deviations wide (Bernstein's inequality gives the M below). Moreover |φ(t)| is at most
exp(-2V sin²(t/2)), so most points add nothing either. At most 28 are left, for every n and k.

With g_l the normalised terms of this sum and s_il = σ(u_i + i t_l), marginals are weighted means:

    P(x_i = 1) = Σ_l g_l s_il          P(x_i = x_j = 1) = Σ_l g_l s_il s_jl         (real parts)

c and the points are constants. The sums do not depend on them, so derivatives of any order that
torch takes of these formulas are right.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.distributions.utils import lazy_property  # keeps gradients, also under no_grad

from softorder import _check
from softorder.densities import BUILT_IN
from softorder.kernels import threshold
from softorder.kernels.formulas import distance

_BLOCK = 8  # units whose law is multiplied out before it is evaluated on the circle
MOST_POINTS = 28  #: that are needed, whatever n and k are
#: What is below e^-digits is left out: 1e-16, or 1e-11 for logits in float32.
_DIGITS = {torch.float64: 37.0, torch.float32: 25.0}


class Share(NamedTuple):
    """A probability and its complement, each to full relative precision."""

    inside: Tensor
    outside: Tensor


def tilt(logits: Tensor, size: Tensor) -> Tensor:
    """u = θ - c with Σ σ(u) = k, in float64; c is a constant to autograd."""
    logits = logits.double()
    constant, one = logits.detach(), torch.ones((), dtype=torch.float64, device=logits.device)
    u = distance(constant, threshold.solve(constant, size, one, BUILT_IN["logistic"]).b, one)
    if not logits.requires_grad:
        return u
    moving = u + (logits - constant)
    free = moving.isfinite()
    return moving if _check.at_hand(free) and free.all() else torch.where(free, moving, u)


class Subsets:
    """The law P(x) ∝ e^<u,x> over the subsets of size k; differentiable in u.

    u comes from `tilt`. p, q are σ(u), σ(-u); angle, weight are t_l, g_l; log_mass is log P(S = k).
    """

    def __init__(self, u: Tensor, size: Tensor, precision: torch.dtype = torch.float64) -> None:
        if u.requires_grad and torch.is_grad_enabled() and _check.eager():
            # torch conjugates by a mark, which its autograd overlooks inside of wrappers
            _check.no_wrapper(u, "derivatives through complex numbers")
        self.p, self.q = torch.sigmoid(u), torch.sigmoid(-u)
        self.angle, share = _points(self.p.detach() * self.q.detach(), _DIGITS[precision])
        self.z = torch.polar(torch.ones_like(self.angle), self.angle)
        back = torch.polar(share, -self.angle * size.unsqueeze(-1))
        terms = back * _characteristic(self.p, self.q, self.angle)
        mass = terms.real.sum(-1, keepdim=True)
        self.weight = terms / mass
        self.log_mass = mass.squeeze(-1).log()

    @staticmethod
    def known(u: Tensor, angle: Tensor, weight: Tensor) -> Subsets:
        """The same of points whose weights are known."""
        made = object.__new__(Subsets)
        made.p, made.q, made.angle, made.weight = torch.sigmoid(u), torch.sigmoid(-u), angle, weight
        made.z = torch.polar(torch.ones_like(angle), angle)
        return made

    def single(self) -> Subsets:
        """The same in float32, for derivatives of float32 logits."""
        made = object.__new__(Subsets)
        for name in ("p", "q", "angle", "log_mass"):
            setattr(made, name, getattr(self, name).float())
        for name in ("z", "weight"):
            setattr(made, name, getattr(self, name).to(torch.complex64))
        return made

    @lazy_property
    def _nearness(self) -> Tensor:
        """R = 1/|1 - p + p z|² = 1/(1 - 4 p q sin²(t/2)), (..., points, n): s = p (q z + p) R."""
        chord = -4 * torch.sin(self.angle / 2).square()
        variance = (self.p * self.q).unsqueeze(-2)
        return torch.addcmul(variance.new_ones(()), variance, chord.unsqueeze(-1)).reciprocal()

    @lazy_property
    def inclusion(self) -> Share:
        """P(x_i = 1) and P(x_i = 0)."""
        return self._means(self.weight)

    def pair_sums(self, values: Tensor) -> Share:
        """Σ_j v_j P(x_j = 1, x_i = 1), with P(x_i = 1) at j = i, and Σ_j v_j P(x_j = 1, x_i = 0).

        Of the mean of s_j s_i, which is right for j ≠ i, s_i² has to be s_i at j = i; and of that
        of s_j (1 - s_i), s_i (1 - s_i) has to be 0.
        """
        inside, outside = self._means(self.weight * self.through(values))
        own = self._products * values
        return Share(inside + own, outside - own)

    def covariance_times(self, values: Tensor) -> Tensor:
        """Cov(x) v, the derivative of the inclusion probabilities in θ along v."""
        inside = self.inclusion.inside
        mean = (inside * values).sum(-1, keepdim=True)
        return self.pair_sums(values).inside - inside * mean

    def pairs(self, shares: Tensor) -> Tensor:
        """Σ_l g_l s_il s_jl, (..., n, n), complex; the real part is P(x_i = x_j = 1) for j ≠ i."""
        return (shares * self.weight.unsqueeze(-2)) @ shares.transpose(-1, -2)

    def covariance(self) -> Tensor:
        """Cov(x), (..., n, n): Re Σ_l g_l s_il s_jl - π_i π_j, and π_i (1 - π_i) at j = i."""
        inside, outside = self.inclusion
        found = self.pairs(self.shares()).real - inside.unsqueeze(-1) * inside.unsqueeze(-2)
        found.diagonal(dim1=-2, dim2=-1).copy_(inside * outside)
        return found

    def shares(self) -> Tensor:
        """s_il = σ(u_i + i t_l), (..., n, points), complex."""
        p, q = self.p.unsqueeze(-1), self.q.unsqueeze(-1)
        return (p * self._nearness.transpose(-1, -2)) * (q * self.z.unsqueeze(-2) + p)

    def through(self, values: Tensor) -> Tensor:
        """Σ_j v_j s_jl of every point."""
        p, q = self.p * values, self.q
        turning, still = (self._nearness @ torch.stack([p * q, p * self.p], -1)).unbind(-1)
        return turning * self.z + still

    def _means(self, weight: Tensor) -> Share:
        """Re Σ_l w_l s_il and Re Σ_l w_l (1 - s_il), where 1 - s = q (q + p z*) R."""
        ahead, here, behind = (self._around(weight) @ self._nearness).unbind(-2)
        p, q = self.p, self.q
        return Share(p * (q * ahead + p * here), q * (q * here + p * behind))

    @lazy_property
    def _products(self) -> Tensor:
        """Re Σ_l g_l s_il (1 - s_il)."""
        ahead, here, behind = (self._around(self.weight) @ self._nearness.square()).unbind(-2)
        p, q = self.p, self.q
        return p * q * (q * q * ahead + 2 * p * q * here + p * p * behind)

    def _around(self, weight: Tensor) -> Tensor:
        """Re w z, Re w, Re w z* of every point."""
        # conj() only marks its result, and torch overlooks the mark inside of wrapper subclasses
        turned = weight * self.z, weight, weight * self.z.conj_physical()
        return torch.stack([value.real for value in turned], -2)


# ---- the points --------------------------------------------------------------------------------


def _points(variances: Tensor, digits: float) -> tuple[Tensor, Tensor]:
    """Angles on the upper half circle and their shares: points off the real axis count twice."""
    variance = variances.sum(-1)
    wide = digits / 3 + torch.sqrt((digits / 3) ** 2 + 2 * digits * variance)
    # M is odd: at z = -1 a factor with p = 1/2 would be 0, and R infinite
    half = torch.ceil(wide.clamp(max=variances.shape[-1]) / 2)
    around = 2 * half + 1
    reach = 2 * torch.asin(torch.sqrt(digits / 2 / variance.clamp(min=digits / 2)))
    needed = torch.minimum(half, torch.ceil(reach * around / (2 * math.pi))) + 1
    points = MOST_POINTS
    if _check.at_hand(needed):
        points = int(needed.nan_to_num(1.0).max()) if needed.numel() else 1
    place = torch.arange(points, device=variance.device, dtype=variance.dtype)
    share = torch.where(place == 0, 1.0, 2.0) / around.unsqueeze(-1)
    share = torch.where(place <= half.unsqueeze(-1), share, 0.0)
    return 2 * math.pi * place / around.unsqueeze(-1), share


def _characteristic(p: Tensor, q: Tensor, angle: Tensor) -> Tensor:
    """φ(t_l) = Π_j (q_j + p_j e^(i t_l)): polynomials of blocks of units, evaluated, multiplied."""
    law = _block_laws(p, q)
    power = torch.arange(law.shape[-2], device=p.device, dtype=p.dtype)
    turns = angle.unsqueeze(-1) * power
    phi = torch.complex(torch.cos(turns) @ law, torch.sin(turns) @ law)
    while (blocks := phi.shape[-1]) > 1:
        half = blocks // 2
        product = phi[..., :half] * phi[..., half : 2 * half]
        phi = torch.cat([product, phi[..., 2 * half :]], -1) if blocks % 2 else product
    return phi.squeeze(-1)


def _block_laws(p: Tensor, q: Tensor) -> Tensor:
    """The laws of the numbers of successes in blocks of units, (..., _BLOCK + 1, blocks)."""
    missing = -p.shape[-1] % _BLOCK
    if missing:
        pad = torch.nn.functional.pad
        p, q = pad(p, (0, missing)), pad(q, (0, missing), value=1.0)
    law = [q, p]
    while len(law) <= _BLOCK:
        half = law[0].shape[-1] // 2
        law = _product([c[..., :half] for c in law], [c[..., half:] for c in law])
    return torch.stack(law, -2)


def _product(a: list[Tensor], b: list[Tensor]) -> list[Tensor]:
    """The coefficients of the product of two polynomials of the same degree."""
    degree = len(a) - 1
    result = []
    for power in range(2 * degree + 1):
        first, *others = range(max(0, power - degree), min(degree, power) + 1)
        total = a[first] * b[power - first]
        for i in others:
            total = torch.addcmul(total, a[i], b[power - i])
        result.append(total)
    return result
