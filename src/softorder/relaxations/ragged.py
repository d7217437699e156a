"""Methods of densities on rows of different lengths, one behind another.

First derivatives of p, ranks, sorts and placements come from kernels. All others come from the
formulas for rows that are cut (`relaxations/threshold.py`), whose sums are those of segments, or
from buckets of padded rows.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.kernels import ragged
from softorder.kernels._autograd import wanted
from softorder.kernels._density_numbers import density_of, number_of
from softorder.kernels._operators import library
from softorder.kernels.formulas import distance, exact, inverse
from softorder.kernels.ragged import Segments
from softorder.relaxations.threshold import differentiable_distance


def soft_topk(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
) -> Tensor:
    """p of every score; k and temperature are (rows,) or one number, in float64."""
    rows = (offsets.shape[0] - 1,)
    if torch.is_grad_enabled():
        k, temperature = (v.expand(rows) if v.requires_grad else v for v in (k, temperature))
    arguments = scores, offsets, k, temperature, density
    if _check.eager() and torch.is_grad_enabled() and _learns(scores, k, temperature):
        found: Tensor = _SoftTopK.apply(*arguments)
        return found
    return ragged.forward(*arguments)[0]


def log_soft_topk(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: Density
) -> Tensor:
    """log p, from a threshold and the formula above it."""
    return density.anchored.log_cdf(distances(scores, offsets, k, temperature, density))


def distances(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: Density
) -> Tensor:
    """u = (x - b)/τ of every score with its derivatives, as far as u is finite."""
    b = ragged.threshold(scores, offsets, k, temperature, number_of(density))
    segments = Segments(offsets, scores.shape[0])
    return _distance(scores, segments, k, temperature, b, density, log=True)


def _distance(
    scores: Tensor,
    segments: Segments,
    k: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: Density,
    log: bool,
) -> Tensor:
    """u = (x - b)/τ of every score, with its derivatives."""
    x, b = scores.unsqueeze(-1), segments.spread(b)
    k, temperature = segments.spread(k), segments.spread(temperature)
    if _check.eager() and not (torch.is_grad_enabled() and _learns(scores, k, temperature)):
        return distance(x, b, temperature).squeeze(-1)
    law = density.anchored
    return differentiable_distance(law, x, k, temperature, b, log, segments).squeeze(-1)


def _learns(*inputs: Tensor) -> bool:
    return any(value.requires_grad for value in inputs)


def points(
    scores: Tensor, offsets: Tensor, levels: Tensor, temperature: Tensor, density: Density
) -> Tensor:
    """t (rows, m) with Σ_i F((t - x_i)/τ) = level for levels (m,) or (rows, m), in float64.

    F is even, so t is the threshold of a soft top-k with k = n - level: nothing is sorted.
    """
    x = scores.double()
    segments = Segments(offsets, x.shape[0])
    present = segments.add_up((x > -math.inf).double())
    middle = temperature * density.anchored.middle
    found = []
    for level in levels.expand(segments.count, levels.shape[-1]).unbind(-1):
        t = _threshold(x, segments, (present - level).clamp(min=0), temperature, density)
        found.append(torch.where(present > 0, t + middle, math.nan))
    return torch.stack(found, -1)


def _threshold(
    x: Tensor, segments: Segments, k: Tensor, temperature: Tensor, density: Density
) -> Tensor:
    """b of every row with its derivatives: u = (x - b)/τ tells them, at every finite score."""
    b = ragged.threshold(x, segments.offsets, k, temperature, number_of(density))
    value = torch.where(b[0].isinf(), b[0], b[0] + b[1])
    if _check.eager() and not (torch.is_grad_enabled() and _learns(x, k, temperature)):
        return value
    u = _distance(x, segments, k, temperature, b, density, log=True)
    centre, rest = segments.spread(b)
    live = u.detach().isfinite() & centre.isfinite()
    centre, rest = (torch.where(live, v, 0.0) for v in (centre, rest))
    scale = inverse(segments.spread(temperature), x.dtype).reshape(-1)
    z = torch.where(live, x, 0.0) - centre - rest
    moved = torch.where(live, z * scale - u, 0.0)  # 0, with the derivatives of b/τ
    each = segments.add_up(live.double()).clamp(min=1)
    moved = segments.add_up(moved - moved.detach()) / each
    if not density.anchored.logarithmic:
        slope = segments.add_up(torch.where(live, density.anchored.pdf(u.detach()), 0.0))
        flat = (slope < torch.finfo(x.dtype).tiny) & value.isfinite()
        value = value + _across_gaps(x, segments, temperature, density, value, flat)
    return value + temperature * moved


def _across_gaps(
    x: Tensor, segments: Segments, temperature: Tensor, density: Density, b: Tensor, flat: Tensor
) -> Tensor:
    """0 with the derivatives of b where no score is so near that it would move it.

    There b lies midway between two neighbours, but for a multiple of τ.
    """
    tau, at = temperature.detach(), b.detach() + temperature.detach() * density.anchored.middle
    above, finite = x.detach() > segments.spread(at), x.detach().isfinite()
    nothing = x.new_full((segments.count,), -math.inf)
    sides = torch.where(finite & ~above, x, -math.inf), torch.where(finite & above, -x, -math.inf)
    low, high = (nothing.scatter_reduce(0, segments.row, side, "amax") for side in sides)
    flat = flat & low.isfinite() & high.isfinite()
    middle = torch.where(flat, 0.5 * low - 0.5 * high, 0.0)
    beside = torch.where(flat, (b.detach() - middle.detach()) / tau, 0.0)
    return (middle - middle.detach()) + beside * (temperature - tau)


# ---- the fused kernels, in eager mode and under torch.compile -----------------------------------


def _remember(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    scores, offsets, k, temperature, ctx.density = inputs
    kept = scores, offsets, k, temperature, output[1]
    ctx.save_for_backward(*kept)
    ctx.like = [(value.shape, value.dtype) for value in kept]


def _vjp(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    saved = ctx.saved_tensors
    _check.unpacked(saved, ctx.like)
    scores, offsets, k, temperature, b = saved
    needed = ctx.needs_input_grad[0], *ctx.needs_input_grad[2:4]
    if torch.is_grad_enabled() or _check.transformed():
        p = _by_formula(scores, offsets, k, temperature, b, ctx.density)
        by = wanted(p, (scores, k, temperature), needed, upstream)
        return by[0], None, by[1], by[2], None
    arguments = upstream, scores, offsets, temperature, b, ctx.density, needed[2]
    by_scores, by_row = ragged.backward(*arguments)
    by_k, by_temperature = by_row[0] if needed[1] else None, by_row[1] if needed[2] else None
    return by_scores, None, by_k, by_temperature, None


def _by_formula(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, b: Tensor, density: int
) -> Tensor:
    """p once more, differentiable twice."""
    law, segments = density_of(density), Segments(offsets, scores.shape[0])
    with torch.enable_grad():
        x = scores.to(exact(scores.dtype))
        u = _distance(x, segments, k, temperature, b, law, log=False)
        return law.anchored.cdf(u).to(scores.dtype)


class _SoftTopK(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
    ) -> Tensor:
        found = ragged.forward(scores, offsets, k, temperature, density)
        _remember(ctx, (scores, offsets, k, temperature, density), found)
        return found[0]

    backward = staticmethod(_vjp)


torch.library.register_autograd(
    "softorder::ragged_topk_forward", _vjp, setup_context=_remember, lib=library
)
