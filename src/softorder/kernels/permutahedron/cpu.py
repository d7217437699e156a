"""Calls of the compiled projections."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels._operators import no_gradient


def project(
    scores: Tensor, temperature: Tensor, descending: bool, entropic: bool, *, name: str
) -> tuple[Tensor, ...]:
    """rank: the projection of scores/τ onto the hull of the orders of 1, ..., n.

    sort: that of (n, ..., 1)/τ onto the hull of the orders of the scores, or its mirror.

    Then the scores in ascending order, where they came from, and the first places of the blocks,
    with the number of finite scores behind them; after that, anything.
    """
    scores = scores.contiguous()
    result, values = (torch.empty_like(scores) for _ in range(2))
    order, starts = (torch.empty_like(scores, dtype=torch.int32) for _ in range(2))
    found = values, order, starts
    settings = temperature, descending, entropic
    _call(f"{name}_forward", result, found, *settings, scores=scores)
    return result, *found


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    entropic: bool,
    *,
    name: str,
) -> tuple[Tensor, Tensor]:
    scores, order, starts, *ranks = (value.contiguous() for value in kept)
    by_scores, values = torch.empty_like(scores), scores.gather(-1, order.long())
    found = values, order, starts
    pulled = {"upstream": upstream.contiguous(), "ranks": ranks[0] if ranks else None}
    _call(f"{name}_backward", by_scores, found, temperature, descending, entropic, **pulled)
    return by_scores, no_gradient(by_scores)


def _call(
    name: str,
    out: Tensor,
    found: tuple[Tensor, ...],
    temperature: Tensor,
    descending: bool,
    entropic: bool,
    *,
    scores: Tensor | None = None,
    upstream: Tensor | None = None,
    ranks: Tensor | None = None,
) -> None:
    rows, n = out.shape[:-1], out.shape[-1]
    temperature, stride = _native.dense(temperature, rows)
    _native.call(
        name,
        _native.pointer(scores),
        _native.pointer(upstream),
        _native.pointer(temperature),
        _native.pointer(out),
        *map(_native.pointer, found),
        _native.pointer(ranks),
        rows.numel(),
        n,
        stride,
        descending,
        entropic,
        out.dtype is torch.float64,
        _native.threads(),
    )
