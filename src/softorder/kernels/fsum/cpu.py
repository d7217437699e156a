"""Calls of the compiled F-sums and of their roots."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels import _native


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
    source_offsets: Tensor | None = None,
    target_offsets: Tensor | None = None,
) -> Tensor:
    """The sum at every target; see kernels/fsum/contract.py, for offsets kernels/ragged."""
    rows = _native.rows_of(sources, source_offsets)
    same = _same(sources, targets)
    matrices = [_matrix(v) for v in (sources, source_rest, targets, target_rest, weights)]
    if same:
        matrices[2] = matrices[0]  # the kernel knows ranks by their pointers
    temperature, temperature_stride = _native.dense(temperature, rows)
    sources_taken, source_stride = _counts(source_count, rows)
    targets_taken, target_stride = _counts(target_count, rows)
    out = sources.new_empty(targets.shape)
    _native.call(
        "fsum",
        *map(_native.pointer, matrices),
        _native.pointer(temperature),
        _native.pointer(sources_taken),
        _native.pointer(targets_taken),
        _native.pointer(source_offsets),
        _native.pointer(target_offsets),
        _native.pointer(out),
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
        _native.threads(),
    )
    return out


def invert(
    sources: Tensor,
    levels: Tensor,
    temperature: Tensor,
    count: Tensor | None,
    density: int,
    source_offsets: Tensor | None = None,
    target_offsets: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """centre and rest of the root of every level; see kernels/fsum/contract.py."""
    rows, n = _native.rows_of(sources, source_offsets), levels.shape[-1]
    sources, centre = sources.contiguous(), sources.new_empty(levels.shape)
    shared = not any(levels.stride()[:-1])  # one row of levels, expanded
    if shared and levels.dim() > 1 and rows.numel():
        levels = levels[(0,) * len(rows)]
    levels, rest = levels.contiguous(), torch.empty_like(centre)
    temperature, temperature_stride = _native.dense(temperature, rows)
    taken, count_stride = _counts(count, rows)
    _native.call(
        "fsum_invert",
        _native.pointer(sources),
        _native.pointer(levels),
        _native.pointer(temperature),
        _native.pointer(taken),
        _native.pointer(source_offsets),
        _native.pointer(target_offsets),
        _native.pointer(centre),
        _native.pointer(rest),
        rows.numel(),
        sources.shape[-1],
        n,
        0 if shared else n,
        temperature_stride,
        count_stride,
        density,
        sources.dtype is torch.float64,
        _native.threads(),
    )
    return centre, rest


def _same(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are the same memory seen in the same way."""
    there = _native.pointer(a) == _native.pointer(b)
    return there and a.shape == b.shape and a.stride() == b.stride()


def _matrix(value: Tensor | None) -> Tensor | None:
    return None if value is None else value.contiguous()


def _counts(count: Tensor | None, rows: torch.Size) -> tuple[Tensor | None, int]:
    return (None, 0) if count is None else _native.dense(count, rows)
