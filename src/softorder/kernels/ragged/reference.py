"""Rows of different lengths in plain torch: the kernels of matrices, one bucket after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from softorder.kernels import order, placement, threshold
from softorder.kernels._density_numbers import density_of
from softorder.kernels._operators import Fused, as_tuple, no_gradient
from softorder.kernels.formulas import exact
from softorder.kernels.fsum import reference as sums
from softorder.kernels.placement.reference import unknown_roots
from softorder.kernels.ragged.bucketing import (
    Bucket,
    buckets,
    hidden,
    own_ranks,
    per_row,
    per_score,
)
from softorder.kernels.ragged.segments import Segments


def forward(
    scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """p and its threshold."""
    parts = buckets(offsets)
    found = [
        threshold.forward(part.pad(scores), part.of(k), part.of(temperature), part.mask, density)
        for part in parts
    ]
    return per_score([p for p, _ in found], parts), _columns([b for _, b in found], parts)


def solve(scores: Tensor, offsets: Tensor, k: Tensor, temperature: Tensor, density: int) -> Tensor:
    """Thresholds: centres and rests, stacked (2, rows)."""
    parts, law = buckets(offsets), density_of(density)
    wide = scores.to(exact(scores.dtype))
    found = [
        threshold.solve(hidden(wide, part), part.of(k), part.of(temperature), law).b
        for part in parts
    ]
    return _columns(found, parts)


def backward(
    upstream: Tensor,
    scores: Tensor,
    offsets: Tensor,
    temperature: Tensor,
    b: Tensor,
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked."""
    parts = buckets(offsets)
    found = [
        threshold.backward(
            part.pad(upstream),
            part.pad(scores),
            part.of(temperature),
            b[:, part.rows],
            part.mask,
            density,
            by_temperature,
        )
        for part in parts
    ]
    return per_score([by for by, _ in found], parts), _columns([by for _, by in found], parts)


def _columns(numbers: Sequence[Tensor], parts: Sequence[Bucket]) -> Tensor:
    return per_row([number.T for number in numbers], parts).T.contiguous()


def sort(scores: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Rows in ascending order, NaN last, and where in its row every score came from."""
    segments = Segments(offsets, scores.shape[0])
    order = torch.argsort(scores, stable=True)
    order = order[torch.argsort(segments.row[order], stable=True)]
    return scores[order], order - offsets[:-1][segments.row]


# ---- F-sums, one row after the other -------------------------------------------------------------


def fsum(*arguments: Any) -> Tensor:
    out = torch.zeros_like(arguments[2])
    for row, at, to in _rows(*arguments[8:10]):
        values = zip(arguments[:5], (at, at, to, to, at), strict=True)
        own: list[Any] = [value if value is None else value[part] for value, part in values]
        numbers: list[Any] = [_number(value, row) for value in arguments[5:8]]
        out[to] = sums.fsum(*own, *numbers, *arguments[10:])
    return out


def invert(*arguments: Any) -> tuple[Tensor, Tensor]:
    sources, levels, temperature, count, *offsets, density = arguments
    centre, rest = (torch.zeros_like(levels, dtype=sources.dtype) for _ in range(2))
    for row, at, to in _rows(*offsets):
        tau, own = _number(temperature, row), _number(count, row)
        centre[to], rest[to] = sums.invert(sources[at], levels[to], tau, own, density)
    return centre, rest


def _rows(*offsets: Tensor) -> Iterator[tuple[int, slice, slice]]:
    """Every row, where its sources are and where its targets are."""
    ends = list(zip(*(offset.tolist() for offset in offsets), strict=True))
    for row, (begin, end) in enumerate(pairwise(ends)):
        yield row, slice(begin[0], end[0]), slice(begin[1], end[1])


def _number(value: Any, row: int) -> Any:
    return value if value is None or not value.dim() else value[row]


# ---- ranks, sorts and placements ----------------------------------------------------------------


def rank(
    scores: Tensor, temperature: Tensor, offsets: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    parts, found = buckets(offsets), []
    for part in parts:
        x = hidden(scores, part)
        ranks, *_ = order.rank.forward(x, part.of(temperature), descending, density)
        found.append(own_ranks(ranks, x, part))
    values, places = sort(scores, offsets)
    return per_score(found, parts), values, places.int()


def sorted_scores(
    scores: Tensor, temperature: Tensor, offsets: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    found = _each(order.sort, 6, scores, temperature, offsets, (), descending, density)
    values, places = sort(scores, offsets)
    return found[0], values, places.int(), *found[3:]


def losses(
    scores: Tensor,
    temperature: Tensor,
    offsets: Tensor,
    first: Tensor,
    last: Tensor,
    descending: bool,
    density: int,
) -> tuple[Tensor, ...]:
    places = first, last
    arguments = scores, temperature, offsets, places, descending, density
    (found,) = _each(placement.placement, 1, *arguments)
    values, indices = sort(scores, offsets)
    return found, values, indices.int(), *unknown_roots(found, density)


def _each(
    kernel: Fused,
    outputs: int,
    scores: Tensor,
    temperature: Tensor,
    offsets: Tensor,
    tensors: tuple[Tensor, ...],
    descending: bool,
    density: int,
) -> tuple[Tensor, ...]:
    """The first of what a kernel finds, of all rows."""
    parts = buckets(offsets)
    found = [
        as_tuple(
            kernel.forward(
                hidden(scores, part),
                part.of(temperature),
                *(part.pad(tensor) for tensor in tensors),
                descending,
                density,
            )
        )[:outputs]
        for part in parts
    ]
    return tuple(per_score(result, parts) for result in zip(*found, strict=True))


def vjp_of(kernel: Fused, tensors: int) -> Callable[..., tuple[Tensor, Tensor]]:
    """The way back by that of a kernel for matrices, which finds anew what it needs.

    What was kept: the scores, what a forward pass found, the offsets, and so many other tensors.
    """

    def vjp(
        upstream: Tensor,
        kept: Sequence[Tensor],
        temperature: Tensor,
        descending: bool,
        by_temperature: bool,
        density: int,
    ) -> tuple[Tensor, Tensor]:
        scores, *_, offsets = kept[: len(kept) - tensors]
        parts, found = buckets(offsets), []
        for part in parts:
            x, tau = hidden(scores, part), part.of(temperature).expand(len(part.rows))
            others = [part.pad(tensor) for tensor in kept[len(kept) - tensors :]]
            outputs = as_tuple(kernel.forward(x, tau, *others, descending, density))
            own = list(kernel.keep(x, outputs, *others, density))
            v = torch.where(part.mask, part.pad(upstream), 0.0)
            found.append(kernel.vjp(v, own, tau, descending, by_temperature, density))
        by_scores = per_score([by for by, _ in found], parts)
        heat = per_row([by for _, by in found], parts) if by_temperature else no_gradient(scores)
        return by_scores, heat

    return vjp


rank_vjp = vjp_of(order.rank, 0)
sort_vjp = vjp_of(order.sort, 0)
losses_vjp = vjp_of(placement.placement, 2)
