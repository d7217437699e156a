"""What kernels and methods share: 1/τ, u = (x - b)/τ, and the gradients of p = F(u)."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def distance(scores: Tensor, b: Tensor, temperature: Tensor) -> Tensor:
    """u = (x - b)/τ, in a new tensor."""
    centre, rest = b.unsqueeze(-1).unbind()
    scale = _scale(temperature, scores.dtype)
    # at once for all rows, where the answer is at hand: nobody waits for another device
    if scores.is_cpu and math.isfinite(centre.sum(dtype=torch.float64).item()):
        return (scores - centre).sub_(rest).mul_(scale)
    return exact_distance(scores, centre, rest, scale)


def exact_distance(scores: Tensor, centre: Tensor, rest: Tensor, scale: float | Tensor) -> Tensor:
    """The same by the contract's conventions for infinite thresholds; takes columns of numbers."""
    beside = torch.where(centre.isfinite(), rest, 0.0)
    z = torch.where(scores == centre, -rest, (scores - centre) - beside)
    return torch.where(scores == -math.inf, -math.inf, z * scale)


def inverse(temperature: Tensor, dtype: torch.dtype) -> Tensor:
    """1/τ as a column in the dtype of the scores, always finite. The solver rounds it alike."""
    return column(temperature.reciprocal().clamp(max=torch.finfo(dtype).max).to(dtype))


def column(value: Tensor) -> Tensor:
    """Numbers per row beside the scores. One number needs no axis, and may stay on the CPU then."""
    return value.unsqueeze(-1) if value.dim() else value


def _scale(temperature: Tensor, dtype: torch.dtype) -> float | Tensor:
    """The same, as a number if it is one."""
    if temperature.numel() != 1 or not temperature.is_cpu:
        return inverse(temperature, dtype)
    return min(1 / temperature.item(), torch.finfo(dtype).max)


def vjp(upstream: Tensor, u: Tensor, pdf: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k and of temperature, stacked; differentiable.

    With d = f(u)/τ, scale = 1/τ, q = d/Σd and upstream v: ∂L/∂x = d ⊙ (v - <q,v>), ∂L/∂k = <q,v>,
    ∂L/∂τ = -Σ v d (u - <q,u>). All are 0 where Σd underflows.
    """
    total = pdf.sum(-1, keepdim=True)
    flat = total < torch.finfo(pdf.dtype).tiny
    share = pdf * torch.where(flat, 0.0, 1 / torch.where(flat, 1.0, total))
    mean = (share * upstream).sum(-1, keepdim=True)
    by_scores = torch.where(flat, 0.0, scale) * pdf * (upstream - mean)
    u = torch.nan_to_num(u, posinf=0.0, neginf=0.0)  # there f(u) = 0, and the product is 0
    by_temperature = -(by_scores * u).sum(-1)
    return by_scores, torch.stack([mean.squeeze(-1), by_temperature]).double()
