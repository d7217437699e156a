"""Placement losses in plain torch, from a sort, the roots of F-sums and shares between them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from softorder.densities import Density
from softorder.kernels import _autograd, fsum
from softorder.kernels._density_numbers import density_of
from softorder.kernels._operators import no_gradient
from softorder.kernels.formulas import at_hand, reciprocal
from softorder.kernels.permutation.shares import edge, log_share
from softorder.kernels.placement.cpu import slopes_of
from softorder.kernels.sort import sort as sort_scores
from softorder.kernels.sort.rows import SortedRows, rows_of


def losses(
    scores: Tensor, temperature: Tensor, first: Tensor, last: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    values, order = sort_scores(scores)
    rows, law = rows_of(values.double(), order), density_of(density)
    rows, x, temperature = rows.in_range(scores.double(), temperature, rows.factor())
    roots = fsum.invert(rows.values, rows.levels(), temperature, law, count=rows.count)
    found = losses_between(law, rows, x, roots, temperature, (first, last), descending)
    order = order.int()
    return found, values, order, *unknown_roots(found, density)


def unknown_roots(found: Tensor, density: int) -> tuple[Tensor, Tensor, Tensor]:
    """What stands for the thresholds beside losses where the way back finds them anew."""
    slope = found.new_zeros(slopes_of(found, density))
    return torch.zeros_like(found), slope, torch.full_like(found, -1, dtype=torch.int32)


def losses_between(
    law: Density,
    rows: SortedRows,
    scores: Tensor,
    roots: tuple[Tensor, Tensor],
    temperature: Tensor,
    places: tuple[Tensor, Tensor],
    descending: bool,
) -> Tensor:
    """The losses from all thresholds, differentiable."""
    first, last = places
    wanted = (first >= 0) & (scores != -math.inf)
    if descending:
        first, last = rows.available - 1 - last, rows.available - 1 - first
    inside = (first >= 0) & (last < rows.n)
    ends = torch.where(inside, first, 0), torch.where(inside, last, 0) + 1
    scale = rows.column(reciprocal(temperature, scores.dtype))
    centre, rest = roots
    at = rows.at_threshold
    below, above = (edge(at(centre, j), at(rest, j), scores, scale) for j in ends)
    entry = torch.where(inside, log_share(law, below, above), -math.inf)
    if rows.finite is not None and rows.present is not None:
        # what is certain shares the last places with its equals
        within = torch.minimum(last + 1, rows.present) - torch.maximum(first, rows.finite)
        crowd = torch.log(within.clamp(min=0) / (rows.present - rows.finite).to(entry.dtype))
        entry = torch.where(scores == math.inf, crowd, entry)
    return torch.where(wanted, rows.spoil(-entry), 0.0)


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
) -> tuple[Tensor, Tensor]:
    """What the losses ask of scores and thresholds, and what these pass on to the scores."""
    scores, values, order, *_, first, last = kept
    rows, law = rows_of(values.double(), order.long()), density_of(density)
    factor = rows.factor()
    rows, scores, temperature = rows.in_range(scores.double(), temperature, factor)
    temperature = temperature.expand(scores.shape[:-1])
    centre, rest = fsum.invert(rows.values, rows.levels(), temperature, law, count=rows.count)

    def directly(x: Tensor, at: Tensor, tau: Tensor) -> Tensor:
        return losses_between(law, rows, x, (at, rest), tau, (first, last), descending)

    inputs = scores, centre, temperature
    upstream = upstream.double()
    if factor is not None:  # first: slopes in these units may be too large for the format
        upstream = factor * upstream
    by, pulls, heat = _autograd.vjp(directly, inputs, upstream)
    if rows.n > 1:
        moved, heated = _pass_on(rows, law, pulls[..., 1:-1], centre, rest, temperature)
        by, heat = by + rows.to_origin(moved), heat + heated
    if rows.spoiled is not None:
        by = torch.where(scores.isfinite() & ~rows.spoiled, by, 0.0)
        heat = torch.where(rows.spoiled.squeeze(-1), 0.0, heat)
    by = by.to(values.dtype)
    return by, heat if by_temperature else no_gradient(by)


def _pass_on(
    rows: SortedRows,
    law: Density,
    pulls: Tensor,
    centre: Tensor,
    rest: Tensor,
    temperature: Tensor,
) -> tuple[Tensor, Tensor]:
    """What the thresholds t = centre + rest that are finite hand to the sorted scores and to τ.

    With u = (t_j - x_i)/τ: dt_j = Σ_i f(u) (dx_i + u dτ)/Σ_i f(u), unless that underflows.
    """
    t, rest = centre[..., 1:-1].contiguous(), rest[..., 1:-1].contiguous()
    count = torch.as_tensor(rows.n if rows.count is None else rows.count, device=t.device)
    finite = (count - 1).clamp(min=0)
    live = torch.arange(rows.n - 1, device=t.device) < finite.unsqueeze(-1)
    pulls, t, rest = (torch.where(live, v, 0.0) for v in (pulls, t, rest))

    def at_roots(moment: int) -> Tensor:
        return fsum.fsum(
            rows.values,
            t,
            None,
            temperature,
            law,
            derivative=1,
            moment=moment,
            target_rest=rest,
            source_count=count,
            target_count=finite,
        )

    slope = at_roots(0)
    flat = slope < fsum.flat_below(law)
    share = torch.where(flat, 0.0, pulls / torch.where(flat, 1.0, slope))
    by = fsum.fsum(
        t,
        rows.values,
        share,
        temperature,
        law,
        derivative=1,
        source_rest=rest,
        source_count=finite,
        target_count=count,
    )
    heat = (share * at_roots(1)).sum(-1)
    flat &= live
    if at_hand(flat) and not flat.any():
        return by, heat
    moved, heated = _across_gaps(rows, law, torch.where(flat, pulls, 0.0), t, rest, temperature)
    return by + moved, heat + heated


def _across_gaps(
    rows: SortedRows,
    law: Density,
    pulls: Tensor,
    centre: Tensor,
    rest: Tensor,
    temperature: Tensor,
) -> tuple[Tensor, Tensor]:
    """The same of thresholds in gaps where the slope underflows: see kernels/fsum/edges.py."""
    edges, tau = fsum.edge_law(law, temperature)
    x, scale = rows.values, temperature.unsqueeze(-1)

    def at_edges(weights: Tensor | None) -> Tensor:
        count = rows.count
        return fsum.fsum(
            x, x, weights, tau, edges, derivative=1, source_count=count, target_count=count
        )

    number = at_edges(None)
    number = torch.where(number > 0, number, 1.0)
    mean = at_edges(torch.where(x.isfinite(), x, 0.0)) / number
    below, above = ((end * (centre - x[..., at]) + end * rest) / scale for end, at in _EDGES)
    lower = fsum.share_of_lower(law, *(v.clamp(min=0) for v in (below, above)))
    lower = torch.where(pulls == 0, 0.5, lower)
    middle = lower * mean[..., :-1] + (1 - lower) * mean[..., 1:]
    beside = ((centre - middle) + rest) / scale
    ends = functional.pad((1 - lower) * pulls, (1, 0)) + functional.pad(lower * pulls, (0, 1))
    return at_edges(ends / number), torch.where(pulls == 0, 0.0, pulls * beside).sum(-1)


# The edges of a gap as seen from a threshold: on which side, and which of the sorted scores.
_EDGES = (1, slice(None, -1)), (-1, slice(1, None))
