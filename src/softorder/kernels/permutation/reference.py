"""Rows of soft permutations in plain torch."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels import fsum
from softorder.kernels._density_numbers import density_of
from softorder.kernels._operators import no_gradient
from softorder.kernels.formulas import column, inverse
from softorder.kernels.permutation.shares import edge, share
from softorder.kernels.sort.rows import SortedRows, sort_rows


def rows(
    scores: Tensor, temperature: Tensor, descending: bool, density: int, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first k rows, and centre and rest of their k + 1 thresholds."""
    x, law = scores.double(), density_of(density)
    order = sort_rows(x)
    levels = levels_of(order, descending, k)
    centre, rest = fsum.invert(order.values, levels, temperature, law, count=order.count)
    p = between(x, order, centre, rest, temperature, descending, law)
    return p.to(scores.dtype), centre, rest


def levels_of(order: SortedRows, descending: bool, k: int) -> Tensor:
    """How many scores are below each of the k + 1 thresholds, ascending."""
    levels = torch.arange(k + 1, device=order.values.device)
    return levels + (order.available - k) if descending else levels


def between(
    x: Tensor,
    order: SortedRows,
    centre: Tensor,
    rest: Tensor,
    temperature: Tensor,
    descending: bool,
    law: Density,
) -> Tensor:
    """P from its thresholds, differentiable.

    In float64: a row is a sum of small differences of shares, all off in the same sense.
    """
    scale = column(inverse(temperature, x.dtype))
    edges = edge(centre.unsqueeze(-1), rest.unsqueeze(-1), x.unsqueeze(-2), scale)
    p = share(law, edges.rows(slice(None, -1)), edges.rows(slice(1, None)))
    p = p.flip(-2) if descending else p
    return p if order.finite is None else order.with_certain(x, p, descending)


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
    k: int,
) -> tuple[Tensor, Tensor]:
    """With u_ji = (t_j - x_i)/τ and w_j = v_j - v_{j+1}, v being 0 outside the k rows:

        ∂L/∂x_i = (1/τ) Σ_j f(u_ji) (Σ_l w_jl f(u_jl)/Σ_l f(u_jl) - w_ji)

    A threshold whose slope Σ f underflows does not move.
    """
    scores, centre, rest = kept
    x, law = scores.double().unsqueeze(-2), density_of(density)
    centre, rest = centre.unsqueeze(-1), rest.unsqueeze(-1)
    live = x.isfinite() & centre.isfinite() & ~scores.isnan().any(-1)[..., None, None]
    scale = column(inverse(temperature, x.dtype))
    u = torch.where(live, (centre - x) + rest, 0.0) * scale
    pdf = torch.where(live, law.pdf(u), 0.0)
    v = torch.where(live[..., :1, :] | live.any(-2, keepdim=True), upstream.double(), 0.0)
    v = torch.nn.functional.pad(v.flip(-2) if descending else v, (0, 0, 1, 1))
    w = v[..., :-1, :] - v[..., 1:, :]
    slope = pdf.sum(-1, keepdim=True)
    flat = slope < torch.finfo(slope.dtype).tiny
    mean = torch.where(flat, 0.0, (w * pdf).sum(-1, keepdim=True) / torch.where(flat, 1, slope))
    by_scores = ((pdf * (mean - w)).sum(-2) * scale.squeeze(-1)).to(scores.dtype)
    return by_scores, no_gradient(by_scores)
