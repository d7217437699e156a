"""Ranks and sorts by projection onto a permutahedron in one go, for CPU tensors.

The same numbers as methods/permutahedron.py has from a sort, the blocks of `isotonic` and sums over
them, from compiled kernels that sort, pool and put back, whatever the rows hold (-inf is absent and
goes last, +inf is certain, NaN spoils its row). Nothing here is differentiable, but everything has
a vector-Jacobian product, which is one sum over each block.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels import native

_PERMUTAHEDRON = struct.Struct("@8P3N4i0P")  # struct Permutahedron of csrc/permutahedron.hpp


class Projected(NamedTuple):
    """Ranks or sorted scores, and what their backward pass needs.

    `values` are the scores in ascending order, `order` says where they came from, `starts` are the
    first places of the blocks, and the number of finite scores behind them; after that, anything.
    `ranks` is the result once more where the backward pass reads it, or empty.
    """

    result: Tensor
    values: Tensor
    order: Tensor
    starts: Tensor
    ranks: Tensor


def serves(scores: Tensor, temperature: Tensor) -> bool:
    """Whether there is a compiled kernel for these scores."""
    return native.serves(scores, temperature, most=native.INT32)


def project(
    scores: Tensor, temperature: Tensor, descending: bool, *, operator: str, entropic: bool
) -> Projected:
    """rank: the projection of scores/τ onto the hull of the orders of 1, ..., n.

    sort: that of (n, ..., 1)/τ onto the hull of the orders of the scores, or its mirror.
    """
    dense = torch.contiguous_format
    result, values = (torch.empty_like(scores, memory_format=dense) for _ in range(2))
    order, starts = (torch.empty_like(values, dtype=torch.int32) for _ in range(2))
    ranks = result if operator == "rank" and entropic else result.new_empty(0)
    found = Projected(result, values, order, starts, ranks)
    name = f"projected_{operator}_forward"
    _call(name, found, temperature, descending, entropic, scores=scores.contiguous())
    return found


def project_vjp(
    upstream: Tensor,
    saved: Projected,
    temperature: Tensor,
    descending: bool,
    *,
    operator: str,
    entropic: bool,
) -> Tensor:
    """The gradient of the scores."""
    found = saved._replace(result=torch.empty_like(saved.values))
    name = f"projected_{operator}_backward"
    _call(name, found, temperature, descending, entropic, upstream=upstream.contiguous())
    return found.result


def _call(
    name: str,
    found: Projected,
    temperature: Tensor,
    descending: bool,
    entropic: bool,
    *,
    scores: Tensor | None = None,
    upstream: Tensor | None = None,
) -> None:
    rows, n = found.values.shape[:-1], found.values.shape[-1]
    temperature, stride = native.dense(temperature, rows)
    native.call(
        name,
        _PERMUTAHEDRON.pack(
            native.pointer(scores),
            native.pointer(upstream),
            native.pointer(temperature),
            native.pointer(found.result),
            native.pointer(found.values),
            native.pointer(found.order),
            native.pointer(found.starts),
            native.pointer(found.ranks),
            rows.numel(),
            n,
            stride,
            descending,
            entropic,
            found.values.dtype is torch.float64,
            native.threads(),
        ),
    )
