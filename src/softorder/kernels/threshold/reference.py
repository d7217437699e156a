"""Thresholds in plain torch, for every device and every density."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder._axis import clean
from softorder.kernels._density_numbers import density_of
from softorder.kernels.formulas import at_hand, distance, inverse, laid_out, upstream_of, vjp
from softorder.kernels.threshold import solver


def solve(scores: Tensor, k: Tensor, temperature: Tensor, density: int) -> tuple[Tensor, Tensor]:
    """Centres and rests, stacked, and the number of passes."""
    found = _solve(scores, k, temperature, density)
    return found[:2].to(scores.dtype), found[2].to(torch.int32)


def forward(
    scores: Tensor, k: Tensor, temperature: Tensor, mask: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """p and its threshold."""
    x = clean(scores, mask)
    b = _solve(x, k, temperature, density)[:2].to(x.dtype)
    side, tail, *_ = density_of(density).anchored.sides(distance(x, b, temperature))
    p = torch.lerp(tail, 1 - tail, side.relu_())  # the tail below b, 1 - tail above
    return laid_out(p, scores), b


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: Tensor,
    b: Tensor,
    mask: Tensor | None,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked."""
    x, v = clean(scores, mask), upstream_of(upstream, mask, b.dtype)
    u = distance(x, b, temperature)
    pdf = density_of(density).anchored.pdf(u)
    finite = b[0].isfinite()
    if not (at_hand(b) and finite.all()):
        pdf = torch.where(finite.unsqueeze(-1), pdf, 0.0)
    scale = inverse(temperature.to(x.device), x.dtype)
    by_scores, by_row = vjp(v, u, pdf, scale)
    return laid_out(by_scores, scores), by_row if by_temperature else by_row[:1].clone()


def _solve(scores: Tensor, k: Tensor, temperature: Tensor, density: int) -> Tensor:
    """Centres, rests and passes, stacked."""
    shape = scores.shape[:-1]
    if scores.numel() == 0:  # k = 0 of nothing
        return torch.stack([scores.new_full(shape, value) for value in (math.inf, math.inf, 0)])
    x = scores.reshape(math.prod(shape), scores.shape[-1])
    k, tau = _per_row(k, scores), _per_row(temperature, scores)
    found = solver.solve(x, k, tau, density_of(density).anchored, at_hand(scores))
    return found.reshape(3, *shape)


def _per_row(value: Tensor, scores: Tensor) -> Tensor:
    """One number per row, on their device and in float64, where there is such a thing."""
    if not scores.is_cpu:
        wide = torch.float32 if scores.device.type == "mps" else torch.float64
        value = value.to(scores.device, wide)
    return value.expand(scores.shape[:-1]).reshape(-1)
