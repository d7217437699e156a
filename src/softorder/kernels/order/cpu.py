"""Calls of the compiled ranks and sorts."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels._operators import no_gradient


def rank(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    density: int,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """1/2 + Σ_j F((x_i - x_j)/τ) over the last axis; the sorted scores, and their indices."""
    scores = scores.contiguous()
    ranks, values = torch.empty_like(scores), torch.empty_like(scores)
    order = torch.empty_like(scores, dtype=torch.int32)
    found = values, order
    settings = temperature, descending, density
    _call("soft_rank_forward", *settings, ranks, scores, None, *found, offsets=offsets)
    return ranks, values, order


def rank_vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
) -> tuple[Tensor, Tensor]:
    settings = temperature, descending, by_temperature, density
    return gradients("soft_rank_backward", upstream, kept, *settings)


def sort(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    density: int,
    offsets: Tensor | None = None,
) -> tuple[Tensor, ...]:
    """t_j with FSum(t_j) = j - 1/2, and what contract.py lists."""
    scores = scores.contiguous()
    t, values, rest, slope = (torch.empty_like(scores) for _ in range(4))
    order, segment = (torch.empty_like(scores, dtype=torch.int32) for _ in range(2))
    found = values, order, segment, rest, slope
    settings = temperature, descending, density
    _call("soft_sort_forward", *settings, t, scores, None, *found, offsets=offsets)
    return t, *found


def sort_vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
) -> tuple[Tensor, Tensor]:
    settings = temperature, descending, by_temperature, density
    return gradients("soft_sort_backward", upstream, kept, *settings)


def gradients(
    name: str,
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
    *,
    offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Those of the scores and, if wanted, of the temperature of every row."""
    by_scores, upstream = torch.empty_like(kept[0]), upstream.contiguous()
    heat = no_gradient(by_scores)
    if by_temperature:
        heat = heat.new_empty(_native.rows_of(by_scores, offsets))
    wanted = heat if by_temperature else None
    settings = temperature, descending, density
    _call(name, *settings, by_scores, None, upstream, *kept, heat=wanted, offsets=offsets)
    return by_scores, heat


def _call(
    name: str,
    temperature: Tensor,
    descending: bool,
    density: int,
    out: Tensor,
    scores: Tensor | None,
    upstream: Tensor | None,
    *found: Tensor,
    heat: Tensor | None = None,
    offsets: Tensor | None = None,
) -> None:
    rows, n = _native.rows_of(out, offsets), out.shape[-1]
    temperature, stride = _native.dense(temperature, rows)
    missing = (0,) * (5 - len(found))
    _native.call(
        name,
        0 if scores is None else _native.pointer(scores),
        0 if upstream is None else _native.pointer(upstream),
        _native.pointer(temperature),
        _native.pointer(out),
        *map(_native.pointer, found),
        *missing,
        0 if heat is None else _native.pointer(heat),
        0 if offsets is None else _native.pointer(offsets),
        rows.numel(),
        n,
        stride,
        density,
        descending,
        out.dtype is torch.float64,
        _native.threads(),
    )
