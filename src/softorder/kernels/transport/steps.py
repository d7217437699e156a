"""Steps from anchor to anchor, the plans and the curvature they make: of solvers and derivatives.

The names are those of kernels/transport/reference.py: E the steps, P the plan, Q and U its parts
below and above a threshold, J the curvature.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.kernels.formulas import at_hand

CERTAIN = 1e100  #: E where a score cannot but go on; its negative where it must stay


def hard_thresholds(values: Tensor, levels: Tensor) -> Tensor:
    """Midway between the last score below and the first above, in sorted gains."""
    last = values.shape[-1] - 1
    below, above = (i.clamp(0, last).long() for i in (levels - 1, levels))
    if values.shape[1] == 1:
        low, high = (values.squeeze(1).gather(-1, i) for i in (below, above))
    else:
        low, high = (values.gather(-1, i.unsqueeze(-1)).squeeze(-1) for i in (below, above))
    middle = 0.5 * low + 0.5 * high
    return torch.where(middle.isfinite(), middle, 0.0)


def scale_of(temperature: Tensor) -> Tensor:
    """1/ε, always finite, in front of the axes of the plan."""
    return temperature.reciprocal().clamp(max=1e300)[..., None, None]


def steps_of(gains: Tensor, levels: Tensor, total: Tensor, centre: Tensor, scale: Tensor) -> Tensor:
    """E = (gains - centre)/ε, where closed thresholds let everything pass, or nothing."""
    present = gains < torch.inf
    # The inner where keeps infinities out of derivatives.
    steps = (torch.where(present, gains, 0.0) - centre.unsqueeze(-1)) * scale
    steps = torch.where(present, steps.clamp(-CERTAIN, CERTAIN), CERTAIN)
    steps = torch.where((levels <= 0).unsqueeze(-1), CERTAIN, steps)
    return torch.where((levels >= total).unsqueeze(-1), -CERTAIN, steps)


def reached(values: Tensor, levels: Tensor, scale: Tensor, reach: float) -> int:
    """How many of the sorted gains can be below the last anchor with more than exp(-reach).

    Σ σ((t - gains)/ε) ≤ levels bounds the last threshold t, as more anchors only add to what is
    below it: t exceeds the next score by no more than ε log n.
    """
    n = values.shape[-1]
    if not at_hand(values):
        return n
    next_one = values.gather(-1, levels[..., -1:].clamp(0, n - 1).long())
    near = (values - next_one) * scale <= reach + 3 * math.log(n)
    counts = (near & values.isfinite()).sum(-1)
    return max(int(counts.max()), 1) if counts.numel() else 1


def logits(steps: Tensor) -> Tensor:
    """log P but for a constant: sums of steps from the best anchor outwards, which stay small.

    Σ_{l<a} min(d_l, 0) - Σ_{l≥a} max(d_l, 0) = Σ_{l<a} d_l - Σ_l max(d_l, 0).
    """
    falls = steps.clamp(max=0)
    down, up = falls.cumsum(-2), (steps - falls).flip(-2).cumsum(-2).flip(-2)
    none = torch.zeros_like(steps[..., :1, :])
    return torch.cat([none, down], -2) - torch.cat([up, none], -2)


def sides(plan: Tensor) -> tuple[Tensor, Tensor]:
    """Q and U of every threshold."""
    below = plan.cumsum(-2)[..., :-1, :]
    above = plan.flip(-2).cumsum(-2).flip(-2)[..., 1:, :]
    return below, above


def curvature(below: Tensor, above: Tensor) -> Tensor:
    """J."""
    product = below @ above.mT
    return product.triu() + product.triu(1).mT


def solve_curvature(curvature: Tensor, right: Tensor, flat: float) -> tuple[Tensor, Tensor]:
    """J⁻¹ right, scaled to a unit diagonal; 0 where J_jj < flat. And where that failed."""
    diagonal = curvature.diagonal(dim1=-2, dim2=-1)
    still = diagonal < flat
    unit = torch.where(still, 0.0, torch.where(still, 1.0, diagonal).rsqrt())
    scaled = unit.unsqueeze(-1) * curvature * unit.unsqueeze(-2)
    eye = torch.eye(curvature.shape[-1], dtype=curvature.dtype, device=curvature.device)
    scaled = torch.where(eye > 0, 1 + 1e-14, scaled)
    factor, failed = torch.linalg.cholesky_ex(scaled)
    found = torch.cholesky_solve(unit.unsqueeze(-1) * right, factor)
    return unit.unsqueeze(-1) * found, failed > 0
