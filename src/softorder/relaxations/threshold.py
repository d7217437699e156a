"""Threshold methods: p_i = F((x_i - b)/τ) with b such that Σ p_i = k, one per density F.

The threshold comes from a kernel, as a constant. Two Newton steps from it, of value 0, put the
derivatives back: b is then right to third order in everything that k, τ and the scores do, and
first and second derivatives, forward mode, vmap and compile follow from plain torch.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder._axis import back, beside, clean, last, per_rows
from softorder._check import PerRow
from softorder.densities import BUILT_IN, Density, UserDensity
from softorder.kernels import threshold
from softorder.kernels._density_numbers import density_of, number_of
from softorder.kernels._operators import library
from softorder.kernels.formulas import (
    column,
    distance,
    exact_distance,
    inverse,
    minus,
    part_of,
    stretched,
    upstream_of,
    vjp,
)
from softorder.kernels.shards import WHOLE, Whole
from softorder.relaxations._base import Method, register
from softorder.relaxations.log_topk import log_topk
from softorder.relaxations.one_entry import log_entries


class ThresholdMethod(Method):
    """The soft top-k of one density.

    Maximises <x, π> - τ Σ ψ(π_i) over {π in [0,1]^n, Σ π = k} with ψ' = F⁻¹, hence
    p_i = F((x_i - b)/τ). With d_i = f((x_i - b)/τ)/τ, q = d/Σd and upstream v:

        ∂L/∂x = d ⊙ (v - <q,v>)     ∂L/∂k = <q,v>     ∂L/∂τ = -(1/τ) Σ v_i d_i (x_i - <q,x>)

    Args:
        density: F, see `so.densities`.

    >>> import torch, softorder as so
    >>> method = so.relaxations.ThresholdMethod(so.densities.Laplace())
    >>> so.soft_topk(torch.tensor([2.0, 1.0, 0.0]), 1, method=method)
    tensor([0.6453, 0.2593, 0.0954])
    """

    operators = ("soft_topk", "log_soft_topk")
    sharded = operators
    takes_scores_as_they_are = ("soft_topk",)
    cost = "O(n)"

    def __init__(self, density: Density) -> None:
        self.density = density
        # A user's density may have parameters of its own, which only the formulas see.
        self.number = None if isinstance(density, UserDensity) else number_of(density)
        self.name = density.name
        self.smoothness = density.smoothness
        self.good_for = density.good_for
        self.paper = density.paper

    def soft_topk(
        self,
        scores: Tensor,
        k: PerRow,
        temperature: PerRow,
        mask: Tensor | None = None,
        dim: int = -1,
    ) -> Tensor:
        if self.number is not None:
            if _check.eager():
                return _fused(scores, k, temperature, mask, self.number, dim)
            if _check.traceable():
                return _traced(scores, k, temperature, mask, self.number, dim)
        x = last(clean(scores, mask), dim)
        k, temperature = per_rows(k, temperature, x)
        p = self.density.anchored.cdf(self._distance(x, k, temperature, log=False))
        return back(p, scores, dim)

    def log_soft_topk(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        known = self.number is not None and _check.eager()
        if known and self._learns(scores, k, temperature):
            return log_topk(scores, k, temperature, self.density, self._log)
        return self._log(scores, k, temperature)

    def _log(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        return self.density.anchored.log_cdf(self._distance(scores, k, temperature, log=True))

    def log_masses(
        self, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
    ) -> Tensor:
        return log_entries(self, scores, index, ks, temperature)

    def distance(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        """u = (x - b)/τ with its derivatives, as far as u is finite."""
        return self._distance(scores, k, temperature, log=True)

    def _distance(self, scores: Tensor, k: Tensor, temperature: Tensor, log: bool) -> Tensor:
        b, _ = threshold.solve(scores, k, temperature, self.density)
        if _check.eager() and not self._learns(scores, k, temperature):
            return distance(scores, b, temperature)
        return differentiable_distance(self.density.anchored, scores, k, temperature, b, log=log)

    def _learns(self, *inputs: Tensor) -> bool:
        return torch.is_grad_enabled() and (
            self.number is None or any(v.requires_grad for v in inputs)
        )


def differentiable_distance(
    law: Density,
    scores: Tensor,
    k: Tensor,
    temperature: Tensor,
    b: Tensor,
    log: bool,
    shards: Whole = WHOLE,
) -> Tensor:
    """u = (x - b)/τ with its derivatives, from a threshold without any.

    For p, an element is `live` where f(u) > 0; for log p, where u is finite.
    """
    centre, rest = b.unsqueeze(-1)
    scale = inverse(temperature, scores.dtype)
    constant = exact_distance(scores.detach(), centre, rest, scale.detach())
    live = centre.isfinite() & (constant.isfinite() if log else law.pdf(constant) > 0)
    # The inner where keeps infinities out of the quotient, the outer one keeps them in u.
    part = part_of(centre, rest)
    z = torch.where(live, minus(scores, centre, rest, part), 0.0)
    u = torch.where(live, z * stretched(scale, part), constant)
    step = _log_step if log and law.logarithmic else _step
    k = column(k.to(scores.dtype))
    for _ in range(2):
        u = torch.where(live, u - step(law, u, live, k, shards), u)
    return u


def _step(law: Density, u: Tensor, live: Tensor, k: Tensor, shards: Whole) -> Tensor:
    """Newton's step (Σ F(u) - k)/Σ f(u), at a root: its value is 0, its derivatives are not.

    Both sums are in units of the second one, whose square may underflow.
    """
    total = shards.sum(torch.where(live, law.pdf(u), 0.0))
    flat = total < torch.finfo(u.dtype).tiny
    unit = torch.where(flat, 1.0, total.detach())
    residual = _nought(shards.sum(torch.where(live, law.cdf(u), 0.0)) - k)
    return torch.where(flat, 0.0, (residual / unit) / torch.where(flat, 1.0, total / unit))


def _log_step(law: Density, u: Tensor, live: Tensor, k: Tensor, shards: Whole) -> Tensor:
    """The same step where every f(u) may underflow: in units of f at the nearest score.

    With a = |u| and Mills' ratio m = F(-a)/f(a), of which neither is large or small together,

        step = (L - U - k/f(a₀)) / Σ w,   w = f(a)/f(a₀),   L, U = Σ w m below and above b.

    If exactly k scores are above b, then L = U: each side has a nearest score of its own, and is
    divided by its sum. Otherwise rounding b by one digit, which is many τ in a wide gap, would
    decide which side counts. Where f(a₀) underflows, k would have to move b infinitely fast: its
    derivative is taken as 0. Where a digit of a₀ changes every w by a factor of e^64 (in the wide
    gaps of the normal density), only ties share, whatever the scores do: w is taken as a constant.
    """
    below, above = u < law.middle, u >= law.middle
    a = torch.where(live, torch.where(below, -u, u), 0.0)
    nearest = _nearest(a, live & below, shards), _nearest(a, live & above, shards)
    both = (nearest[0] < math.inf) & (nearest[1] < math.inf)
    balanced = both & (shards.sum(above.to(u.dtype)) == k.detach())
    first = torch.minimum(*nearest)
    some = first < math.inf
    edges = [torch.where(some, torch.where(balanced, v, first), 0.0) for v in nearest]
    mills = [law.log_mills(v) for v in edges]
    weight = _exp(law.log_ratio(a, torch.where(below, edges[0], edges[1])), live)
    scaled = torch.exp(law.log_mills(a) - torch.where(below, mills[0], mills[1]))  # m/m(edge)
    tail = weight * torch.where(live, scaled, 0.0)
    sums = [shards.sum(torch.where(side, tail, 0.0)).detach() for side in (below, above)]
    units = [torch.where(balanced, 1 / torch.where(balanced, v, 1.0), 1.0) for v in sums]
    steep = torch.finfo(u.dtype).eps * edges[0] * torch.exp(-mills[0]) > 64
    linear = -_nought(a) * torch.exp(-torch.where(below, mills[0], mills[1]))
    tail = torch.where(steep, weight.detach() * linear, tail)
    tail = tail * torch.where(below, units[0], units[1])
    weight = torch.where(steep, weight.detach(), weight)
    weight = weight * torch.where(below, units[0], units[1] * torch.exp(mills[0] - mills[1]))
    residual = shards.sum(torch.where(live, torch.where(below, tail, -tail), 0.0))
    height = law.log_pdf(edges[0])
    k_scale = units[0] * _exp(-height, height > -0.9 * math.log(torch.finfo(u.dtype).max))
    total = shards.sum(weight)
    flat = total == 0
    residual = torch.exp(mills[0]) * _nought(residual)
    step = (residual - k_scale * _nought(k)) / torch.where(flat, 1.0, total)
    return torch.where(flat, 0.0, step)


def _nearest(a: Tensor, side: Tensor, shards: Whole) -> Tensor:
    """The least distance from b on one side, infinite where nothing is there; a constant."""
    return -shards.most(torch.where(side, -a.detach(), -math.inf).amax(-1, keepdim=True))


def _exp(logarithm: Tensor, which: Tensor) -> Tensor:
    """e^logarithm of some, and 0, as a constant, where it vanishes and of the others."""
    seen = which & (logarithm.detach() > math.log(torch.finfo(logarithm.dtype).tiny))
    return torch.where(seen, torch.exp(torch.where(seen, logarithm, 0.0)), 0.0)


def _nought(value: Tensor) -> Tensor:
    """0 with the derivatives of `value`."""
    return value - value.detach()


# ---- the fused kernels, in eager mode and under torch.compile -----------------------------------


def _fused(
    scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None, density: int, dim: int
) -> Tensor:
    """In eager mode."""
    learns = scores.requires_grad or _learned(k) or _learned(temperature)
    if not (learns and torch.is_grad_enabled()):
        return threshold.topk(scores, k, temperature, mask, density, dim)
    if type(k) is not int or type(temperature) is not float:
        k, temperature = _of_rows(scores, k, temperature, dim)
    return _apply(scores, k, temperature, mask, density, dim)


def _traced(
    scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None, density: int, dim: int
) -> Tensor:
    """Under torch.compile and torch.export."""
    if torch.is_grad_enabled():
        k, temperature = _of_rows(scores, k, temperature, dim)
    x, own = last(scores, dim), beside(mask, scores, dim)
    return back(threshold.forward(x, k, temperature, own, density)[0], scores, dim)


def _of_rows(scores: Tensor, k: PerRow, temperature: PerRow, dim: int) -> tuple[PerRow, PerRow]:
    """What has a gradient has one for each row."""
    rows = last(scores, dim).shape[:-1]
    if isinstance(k, Tensor) and k.requires_grad:
        k = k.expand(rows)
    if isinstance(temperature, Tensor) and temperature.requires_grad:
        temperature = temperature.expand(rows)
    return k, temperature


def _learned(value: PerRow) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


_KEPT = object()  # stands for a tensor that autograd keeps


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Any, ...], dim: int = -1) -> None:
    """The graph keeps the scores and the mask as they were given, and a few numbers per row."""
    scores, k, temperature, mask, density = inputs
    values = [k, temperature, mask, output[1]]
    kept = [scores]
    for place, value in enumerate(values):
        if isinstance(value, Tensor):
            kept.append(value)
            values[place] = _KEPT
    ctx.save_for_backward(*kept)
    ctx.remembered = values, [(value.shape, value.dtype) for value in kept], density, dim


def _vjp(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    kept, (values, like, density, dim) = ctx.saved_tensors, ctx.remembered
    _check.unpacked(kept, like)
    scores = kept[0]
    if len(kept) == 1:
        by_k = by_temperature = False
    else:
        saved = iter(kept[1:])
        values = [next(saved) if value is _KEPT else value for value in values]
        by_k, by_temperature = ctx.needs_input_grad[1:3]
    k, temperature, mask, b = values
    anew = torch.is_grad_enabled() or _check.transformed()
    if not (by_k or by_temperature or anew):
        by_scores = threshold.backward_of_scores(
            upstream, scores, temperature, b, mask, density, dim
        )
        return by_scores, None, None, None, None, None
    given, upstream = scores, last(upstream, dim)
    scores, mask = last(scores, dim), beside(mask, scores, dim)
    if anew:
        law, x = density_of(density).anchored, clean(scores, mask)
        k, temperature = per_rows(k, temperature, x)
        b = threshold.thresholds(b, scores)
        u = differentiable_distance(law, x, k, temperature, b, log=False)
        pdf = torch.where(b[0].isfinite().unsqueeze(-1), law.pdf(u), 0.0)
        v = upstream_of(upstream, mask, x.dtype)
        by_scores, by_row = vjp(v, u, pdf, inverse(temperature, x.dtype))
    else:
        b = threshold.thresholds(b, scores)
        by_scores, by_row = threshold.backward(
            upstream, scores, temperature, b, mask, density, by_temperature
        )
    by_numbers = by_row[0] if by_k else None, by_row[1] if by_temperature else None
    return back(by_scores, given, dim), *by_numbers, None, None, None


class _SoftTopK(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        k: PerRow,
        temperature: PerRow,
        mask: Tensor | None,
        density: int,
        dim: int,
    ) -> Tensor:
        found = threshold.remembered(scores, k, temperature, mask, density, dim)
        _remember(ctx, (scores, k, temperature, mask, density), found, dim)
        return found[0]

    backward = staticmethod(_vjp)


# Function.apply without its preparations for torch.func, which is not at work in eager mode: the
# call of a row of 16 scores takes 18 instead of 23 µs. tests/runtime/test_private_torch.py watches.
_apply = super(torch.autograd.Function, _SoftTopK).apply

torch.library.register_autograd(
    "softorder::soft_topk_forward",
    lambda ctx, *upstream: _vjp(ctx, *upstream)[:-1],
    setup_context=_remember,
    lib=library,
)


for _density in BUILT_IN.values():
    register(ThresholdMethod(_density), _density.aliases)
