"""Calls of the compiled placement losses."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.densities import BUILT_IN
from softorder.kernels import _native
from softorder.kernels._density_numbers import number_of
from softorder.kernels._operators import no_gradient


def losses(
    scores: Tensor,
    temperature: Tensor,
    first: Tensor,
    last: Tensor,
    descending: bool,
    density: int,
    offsets: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """-log of what every score has of its places; the sorted scores, their indices, thresholds."""
    scores, first, last = scores.contiguous(), first.contiguous(), last.contiguous()
    found, values = torch.empty_like(scores, dtype=torch.float64), torch.empty_like(scores)
    order = torch.empty_like(scores, dtype=torch.int32)
    slope = found.new_empty(slopes_of(scores, density))
    roots = torch.empty_like(found), slope, torch.empty_like(order)
    settings, sorted_scores = (temperature, descending, density), (scores, values, order)
    given = *settings, *sorted_scores, roots, (first, last), found
    _call("placement_forward", *given, offsets=offsets)
    return found, values, order, *roots


def slopes_of(scores: Tensor, density: int) -> Sequence[int]:
    """The shape of the slopes that are kept with the thresholds: none for laplace."""
    return (0,) if density == _LAPLACE else scores.shape


_LAPLACE = number_of(BUILT_IN["laplace"])


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
    *,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    scores, values, order, *roots, first, last = (value.contiguous() for value in kept)
    by_scores, upstream = torch.empty_like(scores), upstream.double().contiguous()
    heat = no_gradient(by_scores)
    if by_temperature:
        heat = heat.new_empty(_native.rows_of(by_scores, offsets))
    way_back = upstream, by_scores, heat if by_temperature else None
    settings, sorted_scores = (temperature, descending, density), (scores, values, order)
    given = *settings, *sorted_scores, roots, (first, last), None, way_back
    _call("placement_backward", *given, offsets=offsets)
    return by_scores, heat


def _call(
    name: str,
    temperature: Tensor,
    descending: bool,
    density: int,
    scores: Tensor,
    values: Tensor,
    order: Tensor,
    roots: Sequence[Tensor],
    places: Sequence[Tensor],
    found: Tensor | None,
    way_back: tuple[Tensor | None, ...] = (None, None, None),
    offsets: Tensor | None = None,
) -> None:
    rows, n = _native.rows_of(scores, offsets), scores.shape[-1]
    temperature, stride = _native.dense(temperature, rows)
    upstream, by_scores, heat = way_back
    _native.call(
        name,
        _native.pointer(scores),
        _native.pointer(temperature),
        *map(_native.pointer, places),
        _native.pointer(upstream),
        _native.pointer(found),
        _native.pointer(values),
        _native.pointer(order),
        *map(_native.pointer, roots),
        _native.pointer(by_scores),
        _native.pointer(heat),
        _native.pointer(offsets),
        rows.numel(),
        n,
        stride,
        density,
        descending,
        scores.dtype is torch.float64,
        _native.threads(),
    )
