"""Ranks and sorts by projection onto a permutahedron in one go, for CPU tensors.

The same numbers as methods/permutahedron.py has from a sort, the blocks of `isotonic` and sums over
them, from compiled kernels that sort, pool and put back, whatever the rows hold (-inf is absent and
goes last, +inf is certain, NaN spoils its row). The vector-Jacobian product is one sum over each
block.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from softorder.kernels import native
from softorder.kernels._operators import Fused, no_gradient


def _project(
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


def _vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    entropic: bool,
    *,
    name: str,
) -> tuple[Tensor, Tensor]:
    values, order, starts, *ranks = kept
    by_scores, found = torch.empty_like(values), (values, order, starts)
    pulled = {"upstream": upstream.contiguous(), "ranks": ranks[0] if ranks else None}
    _call(f"{name}_backward", by_scores, found, temperature, descending, entropic, **pulled)
    return by_scores, no_gradient(by_scores)


def _keep(
    scores: Tensor, found: Sequence[Tensor], entropic: bool, *, name: str
) -> Sequence[Tensor]:
    """Entropic ranks read themselves again on the way back."""
    result, *others = found
    return [*others, result] if entropic and name == "projected_rank" else others


def _fake(
    scores: Tensor, temperature: Tensor, descending: bool, entropic: bool
) -> tuple[Tensor, ...]:
    result, values = (scores.new_empty(scores.shape) for _ in range(2))
    order, starts = (scores.new_empty(scores.shape, dtype=torch.int32) for _ in range(2))
    return result, values, order, starts


def _fused(name: str) -> Fused:
    return Fused(
        name,
        options="bool entropic",
        outputs=4,
        forward=partial(_project, name=name),
        keep=partial(_keep, name=name),
        vjp=partial(_vjp, name=name),
        fake=_fake,
    )


rank = _fused("projected_rank")
sort = _fused("projected_sort")


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
    temperature, stride = native.dense(temperature, rows)
    native.call(
        name,
        native.pointer(scores),
        native.pointer(upstream),
        native.pointer(temperature),
        native.pointer(out),
        *map(native.pointer, found),
        native.pointer(ranks),
        rows.numel(),
        n,
        stride,
        descending,
        entropic,
        out.dtype is torch.float64,
        native.threads(),
    )
