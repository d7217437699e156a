"""Calls of the compiled rows of SoftSort and NeuralSort.

The kernel sorts only the scores that count: the first k for SoftSort, and for NeuralSort those
whose share does not underflow. To it, what takes no part is at -inf; ascending, at +inf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native
from softorder.kernels._operators import no_gradient
from softorder.kernels.sort.completion import Completion

FAMILIES = ("softsort", "neuralsort")  # in the order of enum RowSoftmaxFamily


def rows(
    scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first k rows (..., k, n), the places of the first scores in order, and their number."""
    if _check.finite(scores):
        return _finite_rows(scores, temperature, descending, family, k)
    exceptions = Completion.of(scores, descending)
    p, order, taken = _finite_rows(_aside(exceptions), temperature, descending, family, k)
    return exceptions.complete_rows(p), order, taken


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    family: str,
    k: int,
) -> tuple[Tensor, Tensor]:
    scores, p, order, taken = kept
    if not _check.finite(scores):
        exceptions = Completion.of(scores, descending)
        scores = _aside(exceptions)
        upstream, p = exceptions.finite_rows(upstream), exceptions.finite_rows(p)
    scores, p, upstream = scores.contiguous(), p.contiguous(), upstream.contiguous()
    out = torch.empty_like(scores)
    _call(scores, p, order, taken, temperature, descending, family, upstream, out)
    return out, no_gradient(out)


def _aside(exceptions: Completion) -> Tensor:
    behind = -math.inf if exceptions.descending else math.inf
    return torch.where(exceptions.live, exceptions.scores, behind)


def _finite_rows(
    scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    scores = scores.contiguous()
    p = scores.new_empty(*scores.shape[:-1], k, scores.shape[-1])
    order = torch.empty_like(scores, dtype=torch.int32)
    taken = order.new_empty(scores.shape[:-1])
    _call(scores, p, order, taken, temperature, descending, family)
    return p, order, taken


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
    temperature, stride = _native.dense(temperature, batch)
    _native.call(
        "row_softmax",
        _native.pointer(scores),
        _native.pointer(temperature),
        _native.pointer(p),
        _native.pointer(order),
        _native.pointer(taken),
        _native.pointer(upstream),
        _native.pointer(gradient),
        batch.numel(),
        *p.shape[-2:],
        stride,
        FAMILIES.index(family),
        descending,
        scores.dtype is torch.float64,
        _native.threads(),
    )
