"""Thresholds in plain torch, for every device and every density."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels._density_numbers import density_of
from softorder.kernels.formulas import distance, inverse, vjp
from softorder.kernels.threshold import solver
from softorder.kernels.threshold.sums import Array


def solve(scores: Tensor, k: Tensor, temperature: Tensor, density: int) -> tuple[Tensor, Tensor]:
    """Centres and rests, stacked, and the number of passes."""
    b, sweeps = _solve(scores, k, temperature, density_of(density))
    return _on_device(b, scores), _on_device(sweeps, scores)


def forward(scores: Tensor, k: Tensor, temperature: Tensor, density: int) -> tuple[Tensor, Tensor]:
    """p and its threshold."""
    b, _ = solve(scores, k, temperature, density)
    side, tail, *_ = density_of(density).anchored.sides(distance(scores, b, temperature))
    return torch.lerp(tail, 1 - tail, side.relu_()), b  # the tail below b, 1 - tail above


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked."""
    u = distance(scores, b, temperature)
    pdf = density_of(density).anchored.pdf(u)
    finite = b[0].isfinite()
    if not finite.all():
        pdf *= finite.unsqueeze(-1)
    by_scores, by_row = vjp(upstream, u, pdf, inverse(temperature, scores.dtype))
    return by_scores, by_row if by_temperature else by_row[:1].clone()


# ---- between the device and the host ------------------------------------------------------------


def _solve(scores: Tensor, k: Tensor, temperature: Tensor, density: Density) -> tuple[Array, Array]:
    shape = scores.shape[:-1]
    rows = scores.reshape(math.prod(shape), scores.shape[-1])
    counts, temperatures = _on_host(k, shape), _on_host(temperature, shape)
    b, sweeps = solver.solve(rows, counts, temperatures, density.anchored)
    return b.reshape(2, *shape), sweeps.reshape(shape)


def _on_host(value: Tensor, shape: torch.Size) -> Array:
    """One number per row."""
    if value.numel() == 1:
        return np.full(math.prod(shape), value.item())
    return value.expand(shape).reshape(-1).cpu().numpy()


def _on_device(value: Array, like: Tensor) -> Tensor:
    return torch.from_numpy(value).to(like.device)
