"""Rows of SoftSort's and NeuralSort's permutations in one go, for CPU tensors.

The same numbers as methods/softmax_rows.py has from a sort and a table of logits, from compiled
kernels that sort only the scores that count: the first k for SoftSort, and for NeuralSort those
whose share does not underflow. Nothing here is differentiable, but there is a vector-Jacobian
product.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels import native

_ROW_SOFTMAX = struct.Struct("@7P4N4i0P")  # struct RowSoftmax of csrc/row_softmax.hpp

FAMILIES = ("softsort", "neuralsort")  # in the order of enum RowSoftmaxFamily


class Rows(NamedTuple):
    """P, and what its backward pass needs: P itself, the scores, and where the first of them are.

    `order` has the places of the first `taken` scores of a row in order, and anything behind.
    """

    result: Tensor
    p: Tensor
    scores: Tensor
    order: Tensor
    taken: Tensor


def serves(scores: Tensor, temperature: Tensor) -> bool:
    """Whether there is a compiled kernel for these scores."""
    return native.serves(scores, temperature, most=native.INT32)


def rows(scores: Tensor, temperature: Tensor, descending: bool, *, family: str, k: int) -> Rows:
    """The first k rows (..., k, n). What takes no part is at -inf; ascending, at +inf."""
    scores = scores.contiguous()
    p = scores.new_empty(*scores.shape[:-1], k, scores.shape[-1])
    order = torch.empty_like(scores, dtype=torch.int32)
    found = Rows(p, p, scores, order, order.new_empty(scores.shape[:-1]))
    _call(found, None, None, temperature, descending, family)
    return found


def rows_vjp(
    upstream: Tensor, saved: Rows, temperature: Tensor, descending: bool, *, family: str
) -> Tensor:
    """The gradient of the scores."""
    gradient = torch.empty_like(saved.scores)
    _call(saved, upstream.contiguous(), gradient, temperature, descending, family)
    return gradient


def _call(
    found: Rows,
    upstream: Tensor | None,
    gradient: Tensor | None,
    temperature: Tensor,
    descending: bool,
    family: str,
) -> None:
    batch = found.scores.shape[:-1]
    temperature, stride = native.dense(temperature, batch)
    native.call(
        "row_softmax",
        _ROW_SOFTMAX.pack(
            native.pointer(found.scores),
            native.pointer(temperature),
            native.pointer(found.p),
            native.pointer(found.order),
            native.pointer(found.taken),
            native.pointer(upstream),
            native.pointer(gradient),
            batch.numel(),
            *found.p.shape[-2:],
            stride,
            FAMILIES.index(family),
            descending,
            found.scores.dtype is torch.float64,
            native.threads(),
        ),
    )
