"""Points below which so many scores are, one level after the other, without sorting: O(n) for each.

FSum(t) = c says that n - c of the mass lies above t, so t is the threshold of a soft top-k, and its
solver serves rows of any length. Scores may count by weights w, as if repeated so many times:

    Σ_i w_i F((t - x_i)/τ) = c        ∂t/∂x_i = w_i f(u_i)/S        ∂t/∂w_i = -τ F(u_i)/S
                                      ∂t/∂c = τ/S                   ∂t/∂τ = Σ_i w_i f(u_i) u_i/S

with u_i = (t - x_i)/τ and S = Σ_i w_i f(u_i). The weighted sum has a solver of its own, in plain
torch: Newton's method in a bracket, on what is missing beside a step function, so that nothing
cancels on a plateau.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density, UserDensity
from softorder.kernels import threshold
from softorder.kernels._autograd import wanted
from softorder.kernels.formulas import beside, inverse
from softorder.kernels.shards import WHOLE, Whole
from softorder.relaxations.threshold import differentiable_distance

_FEW = 4
_STEPS = 100
_ROUNDING = 8 * torch.finfo(torch.float64).eps  # of the sum of weights, in which steps are equal


def few(levels: Tensor) -> bool:
    """So few levels that they take less time than a sort."""
    return 0 < levels.shape[-1] <= _FEW


def points(
    scores: Tensor,
    levels: Tensor,
    temperature: Tensor,
    density: Density,
    weights: Tensor | None = None,
) -> Tensor:
    """t (..., m) for levels (..., m), in float64; ±inf where no finite t has the level."""
    x, rows = scores.double(), scores.shape[:-1]
    tau = beside(temperature, x).expand(rows)
    each = levels.expand(*rows, levels.shape[-1]).unbind(-1)
    w = None if weights is None else torch.where(x > -math.inf, weights.double(), 0.0)
    total = (x > -math.inf).sum(-1).double() if w is None else w.sum(-1)
    if w is not None:  # what is +inf is above all points
        w = torch.where(x < math.inf, w, 0.0)
    above = total if w is None else w.sum(-1)
    t = torch.stack([_point(x, above - c, tau, w, density) for c in each], -1)
    nothing = x.isnan().any(-1) | (total <= 0)
    return torch.where(nothing.unsqueeze(-1), math.nan, t)


def _point(x: Tensor, k: Tensor, tau: Tensor, w: Tensor | None, density: Density) -> Tensor:
    """t with the mass k above it."""
    if _check.eager() and not isinstance(density, UserDensity):
        return _Point.apply(x, k, tau, w, density)
    return _by_formula(x, k, tau, w, density, *_found(x, k, tau, w, density))


class _Point(torch.autograd.Function):
    """First derivatives by their formulas, in a few numbers per score; second by the plain path."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, k: Tensor, tau: Tensor, w: Tensor | None, density: Density
    ) -> Tensor:
        t, b = _found(x, k, tau, w, density)
        ctx.save_for_backward(x, k, tau, w, t, b)
        ctx.density = density
        return t

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        _check.dense("the gradient", upstream)
        x, k, tau, w, t, b = ctx.saved_tensors
        if not torch.is_grad_enabled() and w is None and _check.at_hand(x):
            found = _vjp(upstream, x, tau, ctx.density, t)
            if found is not None:
                return *found, None, None
        with torch.enable_grad():
            # k may come from the weights: as inputs of the formula they are independent
            x, k, tau = (v.view_as(v) for v in (x, k, tau))
            w = w if w is None else w.view_as(w)
            again = _by_formula(x, k, tau, w, ctx.density, t, b)
        inputs: tuple[Any, ...] = (x, k, tau, w)
        return *wanted(again, inputs, ctx.needs_input_grad[:4], upstream), None


def _vjp(
    upstream: Tensor, x: Tensor, tau: Tensor, density: Density, t: Tensor
) -> tuple[Tensor, ...] | None:
    """Gradients of the scores, k and temperature; None where f vanishes for all scores of a row."""
    live = x.isfinite() & t.isfinite().unsqueeze(-1)
    u = torch.where(live, t.unsqueeze(-1) - x, 0.0) * inverse(tau, x.dtype)
    share = torch.where(live, density.pdf(u), 0.0)
    slope = share.sum(-1, keepdim=True)
    rooted = t.isfinite().unsqueeze(-1)
    if bool((rooted & (slope < torch.finfo(x.dtype).tiny)).any()):
        return None
    pull = torch.where(rooted, upstream.unsqueeze(-1) / slope, 0.0)
    share = share * pull  # not in place: the upstream may be a batch
    return share, -tau * pull.squeeze(-1), (share * u).sum(-1)


def _found(
    x: Tensor, k: Tensor, tau: Tensor, w: Tensor | None, density: Density
) -> tuple[Tensor, Tensor]:
    """t, and the threshold as kernels have it; without derivatives."""
    x, k, tau = x.detach(), k.detach(), tau.detach()
    middle = tau * density.anchored.middle
    if w is None:
        b = threshold.solve(x, k, tau, density).b
        t = torch.where(b[0].isinf(), b[0], b[0] + b[1] + middle)
        return (t, b) if density.decay != "none" else _in_the_middle(x, k, tau, middle, t, b)
    with torch.no_grad():
        t = _solve(x, w.detach(), k, tau, density)
    return t, torch.stack([t - middle, torch.where(t.isfinite(), 0.0, t)])


def _in_the_middle(
    x: Tensor, k: Tensor, tau: Tensor, middle: Tensor, t: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """t and b in the middle of a gap of τ, if the sum of a density without tails is k all over it.

    Only there is it flat. A k that was rounded, as 0.29 · 100 is, counts as the whole number.
    """
    at, there = t.unsqueeze(-1), x.isfinite()
    below = torch.where(there & (x <= at), x, -math.inf).amax(-1)
    above = torch.where(there & (x > at), x, math.inf).amin(-1)
    whole = ((x > at).sum(-1) - k).abs() <= _ROUNDING * x.shape[-1]
    flat = whole & t.isfinite() & (0.5 * above - 0.5 * below >= 0.5 * tau)
    t = torch.where(flat, 0.5 * below + 0.5 * above, t)
    moved = torch.stack([t - middle, torch.zeros_like(t)])
    return t, torch.where(flat, moved, b)


class _Weighted(Whole):
    """Rows whose scores count more than once, or less."""

    def __init__(self, weights: Tensor) -> None:
        self.weights = weights

    def sum(self, values: Tensor) -> Tensor:
        return (values * self.weights).sum(-1, keepdim=True)


def _by_formula(
    x: Tensor, k: Tensor, tau: Tensor, w: Tensor | None, density: Density, t: Tensor, b: Tensor
) -> Tensor:
    """t with the derivatives of x_i - τ u_i, the same for every i: the nearest has them best.

    Where f vanishes for all scores, t lies between two neighbours and moves with both.
    """
    t, law, rows = t.detach(), density.anchored, WHOLE if w is None else _Weighted(w)
    if w is not None:
        k = k - _nought((w * _left_out(law, x, tau, t)).sum(-1))
    u = differentiable_distance(law, x, k, tau, b, law.logarithmic, rows)
    rooted = t.isfinite()
    far = torch.where(u.detach().isfinite(), u.detach() - law.middle, math.inf).abs()
    own, beyond = (v.gather(-1, far.argmin(-1, keepdim=True)).squeeze(-1) for v in (x, u))
    moved = torch.where(rooted, own, 0.0) - tau * torch.where(rooted, beyond - law.middle, 0.0)
    if law.logarithmic:
        return t + _nought(moved)
    slope = rows.sum(torch.where(x.isfinite(), law.pdf(u.detach()), 0.0)).squeeze(-1)
    flat = rooted & (slope < torch.finfo(x.dtype).tiny)
    middle = torch.where(flat, _middle(x, t, w), 0.0)
    side = torch.where(flat, (t - middle.detach()) / tau.detach(), 0.0)
    return t + torch.where(flat, _nought(middle) + side * _nought(tau), _nought(moved))


def _left_out(law: Density, x: Tensor, tau: Tensor, t: Tensor) -> Tensor:
    """Scores above t that are no part of the sum's derivative, but count by their weights."""
    above = x.detach() >= t.unsqueeze(-1)
    if law.logarithmic:  # that sum is one of tails
        return above
    u = (x.detach() - t.unsqueeze(-1)) * inverse(tau.detach(), x.dtype) + law.middle
    return above & (law.pdf(u) == 0)


def _middle(x: Tensor, t: Tensor, w: Tensor | None) -> Tensor:
    """Of the two scores that t lies between."""
    there = x.isfinite() if w is None else x.isfinite() & (w > 0)
    below = torch.where(there & (x < t.unsqueeze(-1)), x, -math.inf).amax(-1)
    above = torch.where(there & (x > t.unsqueeze(-1)), x, math.inf).amin(-1)
    return 0.5 * below + 0.5 * above


def _nought(value: Tensor) -> Tensor:
    """0 with the derivatives of `value`."""
    return value - value.detach()


def _solve(x: Tensor, w: Tensor, k: Tensor, tau: Tensor, density: Density) -> Tensor:
    """t with Σ w F((t - x)/τ) = Σ w - k. If all scores were at one end, t would be at F⁻¹ of it."""
    total = w.sum(-1)
    level = total - k
    rooted = (level > 0) & (k > _ROUNDING * total)
    share = torch.where(rooted, level / torch.where(rooted, total, 1.0), 0.5)
    end = tau * density.quantile(share)
    low = torch.where(w > 0, x, math.inf).amin(-1) + end
    high = torch.where(w > 0, x, -math.inf).amax(-1) + end
    low, high = (torch.where(rooted, v, 0.0) for v in (low, high))
    at = torch.where(x.isfinite(), x, 0.0)
    t, still = 0.5 * low + 0.5 * high, rooted
    for step in range(_STEPS):
        missing, slope = _missing(at, w, level, t, tau, density)
        low, high = torch.where(missing <= 0, t, low), torch.where(missing >= 0, t, high)
        newton, middle = t - missing / slope, 0.5 * low + 0.5 * high
        inside = (newton > low) & (newton < high) & (step % 3 < 2)
        near = torch.minimum((newton - t).abs().nan_to_num(math.inf), high - low)
        still = still & (near > 2 * torch.finfo(t.dtype).eps * torch.maximum(t.abs(), tau))
        t = torch.where(still, torch.where(inside, newton, middle), t)
        if _check.at_hand(still) and not still.any():
            break
    t = torch.where(_missing(at, w, level, t, tau, density)[1] > 0, t, _middle(x, t, w))
    return torch.where(rooted, t, torch.where(level > 0, math.inf, -math.inf))


def _missing(
    x: Tensor, w: Tensor, level: Tensor, t: Tensor, tau: Tensor, density: Density
) -> tuple[Tensor, Tensor]:
    """Σ w F((t - x)/τ) - level, as a step function and tails, and its slope."""
    gap = t.unsqueeze(-1) - x
    u = gap.abs() * inverse(tau, gap.dtype)
    steps = (w * torch.heaviside(gap, gap.new_tensor(0.5))).sum(-1) - level
    steps = torch.where(steps.abs() <= _ROUNDING * w.sum(-1), 0.0, steps)
    tails = -(w * density.tail(u) * gap.sign()).sum(-1)
    return steps + tails, (w * density.pdf(u)).sum(-1) / tau
