"""Calls of the compiled kernels behind kernels/ordering.py and kernels/fsum.py."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import native

_FORMATS = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2, torch.float64: 3}


def sort(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The last axis in ascending order, and the indices."""
    scores = scores.contiguous()
    values = torch.empty_like(scores)
    order = torch.empty_like(scores, dtype=torch.int64)
    n = scores.shape[-1]
    native.call(
        "sort",
        native.pointer(scores),
        native.pointer(values),
        native.pointer(order),
        scores.numel() // max(n, 1),
        n,
        _FORMATS[scores.dtype],
        native.threads(),
    )
    return values, order


def fsum(
    sources: Tensor,
    source_rest: Tensor | None,
    targets: Tensor,
    target_rest: Tensor | None,
    weights: Tensor | None,
    temperature: Tensor,
    source_count: Tensor | None,
    target_count: Tensor | None,
    density: int,
    derivative: int,
    moment: int,
) -> Tensor:
    """The sum at every target; see kernels/fsum.py."""
    rows = sources.shape[:-1]
    same = _same(sources, targets)
    matrices = [_matrix(v) for v in (sources, source_rest, targets, target_rest, weights)]
    if same:
        matrices[2] = matrices[0]  # the kernel knows ranks by their pointers
    temperature, temperature_stride = native.dense(temperature, rows)
    sources_taken, source_stride = _counts(source_count, rows)
    targets_taken, target_stride = _counts(target_count, rows)
    out = sources.new_empty(targets.shape)
    native.call(
        "fsum",
        *map(native.pointer, matrices),
        native.pointer(temperature),
        native.pointer(sources_taken),
        native.pointer(targets_taken),
        native.pointer(out),
        rows.numel(),
        sources.shape[-1],
        targets.shape[-1],
        temperature_stride,
        source_stride,
        target_stride,
        density,
        derivative,
        moment,
        sources.dtype is torch.float64,
        native.threads(),
    )
    return out


def invert(
    sources: Tensor, levels: Tensor, temperature: Tensor, count: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """centre and rest of the root of every level; see kernels/fsum.py."""
    rows, n = sources.shape[:-1], levels.shape[-1]
    sources = sources.contiguous()
    shared = not any(levels.stride()[:-1])  # one row of levels, expanded
    levels = (
        levels[(0,) * len(rows)].contiguous() if shared and rows.numel() else levels.contiguous()
    )
    temperature, temperature_stride = native.dense(temperature, rows)
    taken, count_stride = _counts(count, rows)
    centre, rest = (sources.new_empty(*rows, n) for _ in range(2))
    native.call(
        "fsum_invert",
        native.pointer(sources),
        native.pointer(levels),
        native.pointer(temperature),
        native.pointer(taken),
        native.pointer(centre),
        native.pointer(rest),
        rows.numel(),
        sources.shape[-1],
        n,
        0 if shared else n,
        temperature_stride,
        count_stride,
        density,
        sources.dtype is torch.float64,
        native.threads(),
    )
    return centre, rest


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same memory seen in the same way."""
    there = native.pointer(a) == native.pointer(b)
    return there and a.shape == b.shape and a.stride() == b.stride()


def _matrix(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.contiguous()


def _counts(count: Tensor | None, rows: torch.Size) -> tuple[Tensor | None, int]:
    return (None, 0) if count is None else native.dense(count, rows)
