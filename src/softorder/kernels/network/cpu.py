"""Calls of the compiled networks.

The kernel takes rows through the network side by side. Its backward pass starts from the scores
again, so that nothing else is kept: what it needs on its way, O(n k) for a few rows, is scratch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native
from softorder.kernels._operators import no_gradient
from softorder.kernels.network.comparators import COMPILED
from softorder.kernels.network.wires import Wires
from softorder.kernels.sort.completion import Completion
from softorder.networks import Network
from softorder.networks.choice import network_for


def run(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor]:
    """What comes out of the network that selects k, or sorts: its values (..., k), or the matrix
    (..., k, n) that maps scores to them.
    """
    settings = temperature, descending, kind, comparator, k, matrix
    if _check.finite(scores):
        return (_forward(scores, None, *settings),)
    exceptions = Completion.of(scores, descending)
    wires = Wires(exceptions.only_finite(scores), exceptions.live)
    found = _forward(wires.scores, wires.count, *settings)
    if matrix:
        return (exceptions.complete_rows(wires.to_origin(found)),)
    return (exceptions.complete_values(found),)


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor, Tensor]:
    scores, settings = kept[0], (temperature, descending, kind, comparator, k, matrix)
    if _check.finite(scores):
        by_scores = _backward(scores, None, upstream, *settings)
        return by_scores, no_gradient(by_scores)
    exceptions = Completion.of(scores, descending)
    wires = Wires(exceptions.only_finite(scores), exceptions.live)
    if matrix:
        upstream = wires.to_wires(exceptions.finite_rows(upstream))
    else:
        upstream = exceptions.finite_values(upstream)
    found = _backward(wires.scores, wires.count, upstream, *settings)
    by_scores = torch.empty_like(found).scatter(-1, wires.order, found)
    by_scores = torch.where(exceptions.live, by_scores, 0.0)
    return by_scores, no_gradient(by_scores)


def weighted(
    x: Tensor, weights: Tensor, temperature: Tensor, kind: str | None, comparator: str
) -> Tensor:
    """Σ_j w_j P_j of a descending P, (rows, n), for w (rows, k); scores are finite or -inf."""
    if _check.finite(x):
        return _weighted(x, None, weights, None, temperature, kind, comparator)[0]
    wires = _present(x)
    found, _ = _weighted(wires.scores, wires.count, weights, None, temperature, kind, comparator)
    return torch.empty_like(found).scatter(-1, wires.order, found)


def weighted_vjp(
    upstream: Tensor,
    x: Tensor,
    weights: Tensor,
    temperature: Tensor,
    kind: str | None,
    comparator: str,
) -> tuple[Tensor, Tensor]:
    """The gradients of scores and weights."""
    if _check.finite(x):
        return _weighted(x, None, weights, upstream, temperature, kind, comparator)
    wires = _present(x)
    upstream = torch.where(x == -math.inf, 0.0, upstream).gather(-1, wires.order)
    settings = temperature, kind, comparator
    found, by_weights = _weighted(wires.scores, wires.count, weights, upstream, *settings)
    by_scores = torch.empty_like(found).scatter(-1, wires.order, found)
    return torch.where(x == -math.inf, 0.0, by_scores), by_weights


def _present(x: Tensor) -> Wires:
    live = x > -math.inf
    return Wires(torch.where(live, x, 0.0), live)


def _weighted(
    x: Tensor,
    count: Tensor | None,
    weights: Tensor,
    upstream: Tensor | None,
    temperature: Tensor,
    kind: str | None,
    comparator: str,
) -> tuple[Tensor, Tensor]:
    """The sums; or with an upstream the two gradients."""
    x, weights, k = x.contiguous(), weights.contiguous(), weights.shape[-1]
    upstream = None if upstream is None else upstream.contiguous()
    out, by_weights = torch.empty_like(x), torch.empty_like(weights)
    settings = temperature, True, count, kind, comparator, k, True
    _call(x, upstream, out, *settings, weights=weights, by_weights=by_weights)
    return out, by_weights


def _forward(
    scores: Tensor,
    count: Tensor | None,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> Tensor:
    """Of a row, scores from `count` on take no part."""
    scores = scores.contiguous()
    *rows, n = scores.shape
    out = scores.new_empty(*rows, k, n) if matrix else scores.new_empty(*rows, k)
    _call(scores, None, out, temperature, descending, count, kind, comparator, k, matrix)
    return out


def _backward(
    scores: Tensor,
    count: Tensor | None,
    upstream: Tensor,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> Tensor:
    scores, upstream = scores.contiguous(), upstream.contiguous()
    out = torch.empty_like(scores)
    _call(scores, upstream, out, temperature, descending, count, kind, comparator, k, matrix)
    return out


def _call(
    scores: Tensor,
    upstream: Tensor | None,
    out: Tensor,
    temperature: Tensor,
    descending: bool,
    count: Tensor | None,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
    weights: Tensor | None = None,
    by_weights: Tensor | None = None,
) -> None:
    network = network_for(scores.shape[-1], k, kind)
    rows = scores.shape[:-1]
    temperature, stride = _native.dense(temperature, rows)
    live = None if count is None else count.expand(rows).to(torch.int32).contiguous()
    low, high, outputs = _wires(network)
    _native.call(
        "network",
        _native.pointer(scores),
        _native.pointer(temperature),
        _native.pointer(live),
        low.ctypes.data,
        high.ctypes.data,
        outputs.ctypes.data,
        _native.pointer(weights),
        _native.pointer(upstream),
        _native.pointer(out),
        _native.pointer(by_weights),
        rows.numel(),
        network.n,
        network.k,
        network.size,
        stride,
        COMPILED.index(comparator),
        matrix,
        descending,
        scores.dtype is torch.float64,
        _native.threads(),
    )


@lru_cache(maxsize=64)
def _wires(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The low and the high wires of all comparators, one layer after another, and the outputs."""
    none = np.zeros((2, 0), dtype=np.int32)
    low, high = np.concatenate([none, *network.comparators], axis=1).astype(np.int32)
    return low.copy(), high.copy(), np.array(network.outputs, dtype=np.int32)
