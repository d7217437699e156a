"""Plain-torch kernels of kernels/threshold.py, for every device and every density."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels.threshold_solver import Solver


def solve(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density
) -> tuple[Tensor, Tensor, Tensor]:
    """centre, rest and the number of passes."""
    shape = scores.shape[:-1]
    ks, temperatures = (v.expand(shape).reshape(-1).cpu().numpy() for v in (k, temperature))
    rows = scores.reshape(len(ks), scores.shape[-1])
    found = Solver(rows, ks, temperatures, density.anchored).solve()
    centre, rest, sweeps = (torch.from_numpy(v).to(scores.device).view(shape) for v in found)
    return centre, rest, sweeps


def forward(
    scores: Tensor, k: Tensor, temperature: Tensor, density: Density
) -> tuple[Tensor, Tensor, Tensor]:
    """p, centre and rest."""
    centre, rest, _ = solve(scores, k, temperature, density)
    u = distance(scores, centre, rest, temperature)
    side, tail, *_ = density.anchored.sides(u)
    p = torch.lerp(tail, 1 - tail, side.clamp_(min=0))  # the tail below b, 1 - tail above
    return p, centre, rest


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    centre: Tensor,
    rest: Tensor,
    density: Density,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of scores, and of k and temperature per row."""
    u = distance(scores, centre, rest, temperature)
    pdf = density.anchored.pdf(u)
    if not centre.isfinite().all():
        pdf *= centre.isfinite().unsqueeze(-1)
    return vjp(upstream, u, pdf, inverse(temperature, scores.dtype))


def distance(scores: Tensor, centre: Tensor, rest: Tensor, temperature: Tensor) -> Tensor:
    """u = (x - b)/τ, in a new tensor."""
    centre, rest = centre.unsqueeze(-1), rest.unsqueeze(-1)
    scale = inverse(temperature, scores.dtype)
    if not centre.isfinite().all():
        return exact_distance(scores, centre, rest, scale)
    return (scores - centre).sub_(rest).mul_(scale)


def exact_distance(scores: Tensor, centre: Tensor, rest: Tensor, scale: Tensor) -> Tensor:
    """The same by the contract's conventions for infinite thresholds; takes columns of numbers."""
    beside = torch.where(centre.isfinite(), rest, 0.0)
    z = torch.where(scores == centre, -rest, (scores - centre) - beside)
    return torch.where(scores == -math.inf, -math.inf, z * scale)


def inverse(temperature: Tensor, dtype: torch.dtype) -> Tensor:
    """1/τ as a column in the dtype of the scores, always finite. The solver rounds it alike."""
    return (1 / temperature).clamp(max=torch.finfo(dtype).max).to(dtype).unsqueeze(-1)


def vjp(upstream: Tensor, u: Tensor, pdf: Tensor, scale: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of scores, and of k and temperature per row, in differentiable torch.

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
    return by_scores, mean.squeeze(-1).double(), by_temperature.double()
