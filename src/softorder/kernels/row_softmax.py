"""Rows of SoftSort's and NeuralSort's permutations in one go, for CPU tensors.

The same numbers as methods/softmax_rows.py has from a sort and a table of logits, from compiled
kernels that sort only the scores that count: the first k for SoftSort, and for NeuralSort those
whose share does not underflow. What takes no part is at -inf; ascending, at +inf; there is no NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels import native
from softorder.kernels._operators import Fused, no_gradient

FAMILIES = ("softsort", "neuralsort")  # in the order of enum RowSoftmaxFamily


def _rows(
    scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first k rows (..., k, n), the places of the first scores in order, and their number."""
    scores = scores.contiguous()
    p = scores.new_empty(*scores.shape[:-1], k, scores.shape[-1])
    order = torch.empty_like(scores, dtype=torch.int32)
    taken = order.new_empty(scores.shape[:-1])
    _call(scores, p, order, taken, temperature, descending, family)
    return p, order, taken


def _vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    family: str,
    k: int,
) -> tuple[Tensor, Tensor]:
    scores, p, order, taken = kept
    scores, upstream = scores.contiguous(), upstream.contiguous()
    out = torch.empty_like(scores)
    _call(scores, p, order, taken, temperature, descending, family, upstream, out)
    return out, no_gradient(out)


def _keep(scores: Tensor, found: Sequence[Tensor], family: str, k: int) -> Sequence[Tensor]:
    return scores, *found


def _fake(
    scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    *rows, n = scores.shape
    order = scores.new_empty(scores.shape, dtype=torch.int32)
    return scores.new_empty((*rows, k, n)), order, scores.new_empty(rows, dtype=torch.int32)


rows = Fused(
    "row_softmax",
    options="str family, int k",
    outputs=3,
    forward=_rows,
    keep=_keep,
    vjp=_vjp,
    fake=_fake,
)


def _call(
    scores: Tensor,
    p: Tensor,
    order: Tensor,
    taken: Tensor,
    temperature: Tensor,
    descending: bool,
    family: str,
    upstream: Tensor | None = None,
    gradient: Tensor | None = None,
) -> None:
    batch = scores.shape[:-1]
    temperature, stride = native.dense(temperature, batch)
    native.call(
        "row_softmax",
        native.pointer(scores),
        native.pointer(temperature),
        native.pointer(p),
        native.pointer(order),
        native.pointer(taken),
        native.pointer(upstream),
        native.pointer(gradient),
        batch.numel(),
        *p.shape[-2:],
        stride,
        FAMILIES.index(family),
        descending,
        scores.dtype is torch.float64,
        native.threads(),
    )
