"""Ranks and sorts in plain torch, from a sort, F-sums and their roots."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.densities import BUILT_IN, Density
from softorder.kernels import fsum
from softorder.kernels._density_numbers import density_of
from softorder.kernels._operators import no_gradient
from softorder.kernels.formulas import column, inverse
from softorder.kernels.fsum.problem import Split, found_below
from softorder.kernels.sort import sort as sort_scores
from softorder.kernels.sort.rows import SortedRows, ascending, rows_of


def rank(
    scores: Tensor, temperature: Tensor, descending: bool, density: int
) -> tuple[Tensor, Tensor, Tensor]:
    values, order = sort_scores(scores)
    rows = rows_of(values, order)
    below = _sum(rows, None, temperature, density_of(density), 0)
    return all_ranks(rows, below + 0.5, descending), values, order.int()


def rank_vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
) -> tuple[Tensor, Tensor]:
    """With u = (x_i - x_j)/τ, g upstream: Σ_j (g_i - g_j) f(u)/τ, and -Σ_i g_i Σ_j u f(u)/τ."""
    rows = rows_of(kept[0], kept[1].long())
    g = _live(rows, upstream.gather(-1, rows.order))
    g, scale = -g if descending else g, inverse(temperature, g.dtype)
    settings = temperature, density_of(density), 1
    by = g * _sum(rows, None, *settings) - _sum(rows, g, *settings)
    heat = no_gradient(by)
    if by_temperature:
        heat = -(g * scale * _sum(rows, None, *settings, moment=1)).sum(-1).double()
    return rows.to_origin(by * scale), heat


def sort(scores: Tensor, temperature: Tensor, descending: bool, density: int) -> tuple[Tensor, ...]:
    values, order = sort_scores(scores)
    rows = rows_of(values, order)
    levels = rows.places() + 0.5
    law = density_of(density)
    centre, rest = fsum.invert(rows.values, levels, temperature, law, count=rows.count)
    t = all_values(rows, ascending(centre + rest), descending)
    slope = _sum_at(rows, centre, rest, temperature, law)
    if law is BUILT_IN["uniform"]:
        segment, rest = _first_inside(rows, centre, rest, temperature)
    else:
        x = torch.where(_inside(rows), rows.values, torch.inf)
        segment = torch.searchsorted(x, centre.contiguous())
        segment = torch.where(rest.signbit(), segment, torch.searchsorted(x, centre, right=True))
    found = (torch.where(_inside(rows), v, 0) for v in (segment.int(), rest, slope))
    return t, values, order.int(), *found


def sort_vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
) -> tuple[Tensor, Tensor]:
    """With u = (t_j - x_i)/τ, g upstream and s_j = Σ_i f(u): Σ_j g_j f(u)/s_j, and
    Σ_j g_j Σ_i u f(u)/s_j.
    """
    values, order, segment, rest, slope = kept
    rows = rows_of(values, order.long())
    segment, rest, slope = (_live(rows, v) for v in (segment, rest, slope))
    law, place = density_of(density), segment.long()
    if law is not BUILT_IN["uniform"]:
        place = (place - 1 + rest.signbit().int()).clamp(0, rows.n - 1)
    centre = torch.where(_inside(rows), rows.values.gather(-1, place), 0)
    g = _live(rows, rows.mirror(upstream) if descending else upstream)
    share = g / torch.where(slope > 0, slope, 1)
    by = fsum.fsum(
        centre,
        rows.values,
        share,
        temperature,
        law,
        derivative=1,
        source_rest=rest,
        source_count=rows.count,
        target_count=rows.count,
    )
    heat = no_gradient(by)
    if by_temperature:
        heat = (share * _sum_at(rows, centre, rest, temperature, law, moment=1)).sum(-1).double()
    return rows.to_origin(by), heat


def all_ranks(rows: SortedRows, ranks: Tensor, descending: bool) -> Tensor:
    """Ranks of the finite scores in order, completed: equals share, and the absent ones go last;
    at the places of the scores.
    """
    if rows.finite is None or rows.present is None:
        return rows.to_origin(rows.n + 1 - ranks if descending else ranks)
    place, finite, present = rows.places(), rows.finite, rows.present
    ranks = torch.where(place < finite, ranks, ((finite + present + 1) / 2).to(ranks.dtype))
    ranks = present + 1 - ranks if descending else ranks
    last = ((present + 1 + rows.n) / 2).to(ranks.dtype)
    return rows.spoil(rows.to_origin(torch.where(place < present, ranks, last)))


def all_values(rows: SortedRows, t: Tensor, descending: bool) -> Tensor:
    """Values of the present scores, ascending, completed; in the direction that is asked for."""
    if descending:
        t = rows.mirror(t)
        if rows.present is not None:
            t = torch.where(rows.places() < rows.present, t, -torch.inf)
    return rows.spoil(t)


def _sum(
    rows: SortedRows,
    weights: Tensor | None,
    temperature: Tensor,
    law: Density,
    derivative: int,
    moment: int = 0,
) -> Tensor:
    """Σ_j w_j u^moment F^(derivative)(u) at the scores themselves."""
    return fsum.fsum(
        rows.values,
        rows.values,
        weights,
        temperature,
        law,
        derivative=derivative,
        moment=moment,
        source_count=rows.count,
        target_count=rows.count,
    )


def _sum_at(
    rows: SortedRows,
    centre: Tensor,
    rest: Tensor,
    temperature: Tensor,
    law: Density,
    moment: int = 0,
) -> Tensor:
    """Σ_i u^moment f(u) at the values centre + rest."""
    return fsum.fsum(
        rows.values,
        torch.where(_inside(rows), centre, 0),
        None,
        temperature,
        law,
        derivative=1,
        moment=moment,
        target_rest=rest,
        source_count=rows.count,
        target_count=rows.count,
    )


def _first_inside(
    rows: SortedRows, centre: Tensor, rest: Tensor, temperature: Tensor
) -> tuple[Tensor, Tensor]:
    """The first score that is nearer to t = centre + rest than τ/2, and what t is above it."""
    t = Split.of(torch.where(_inside(rows), centre, 0), rest)
    x = Split.of(torch.where(_inside(rows), rows.values, torch.inf))
    count = torch.as_tensor(rows.n if rows.finite is None else rows.finite, device=centre.device)
    half = 0.5 * column(temperature.to(centre.device))
    first = found_below(x, t.moved(-half), count, right=True).clamp(max=rows.n - 1)
    beyond = t.minus(Split.of(rows.values).at(first))
    return first, torch.where(_inside(rows), beyond, 0).to(rest.dtype)


def _inside(rows: SortedRows) -> Tensor:
    """The places of the finite scores."""
    return rows.places() < (rows.n if rows.finite is None else rows.finite)


def _live(rows: SortedRows, value: Tensor) -> Tensor:
    """0 where nothing has a gradient: behind the finite scores, and where NaN spoils a row."""
    inside = _inside(rows)
    return torch.where(inside if rows.spoiled is None else inside & ~rows.spoiled, value, 0)
