"""Soft comparator networks in one go, for CPU tensors.

The same numbers as methods/network_layers.py has, from a compiled kernel that takes rows through
the network side by side. Its backward pass starts from the scores again, so that nothing
else is kept: what it needs on its way, O(n k) for a few rows, is scratch.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softorder.kernels import native
from softorder.kernels._operators import Fused, no_gradient
from softorder.networks import Network
from softorder.networks.choice import network_for

COMPARATORS = ("logistic", "cauchy", "reciprocal", "optimal")  # in the order of enum Comparator


def _run(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    count: Tensor | None,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor]:
    """What comes out of the network that selects k, or sorts: its values (..., k), or the matrix
    (..., k, n) that maps scores to them. Of a row, scores from `count` on take no part.
    """
    scores = scores.contiguous()
    *rows, n = scores.shape
    out = scores.new_empty(*rows, k, n) if matrix else scores.new_empty(*rows, k)
    _call(scores, None, out, temperature, descending, count, kind, comparator, k, matrix)
    return (out,)


def _vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    *options: Any,
) -> tuple[Tensor, Tensor]:
    scores, upstream = kept[0].contiguous(), upstream.contiguous()
    out = torch.empty_like(scores)
    _call(scores, upstream, out, temperature, descending, *options)
    return out, no_gradient(out)


def _keep(scores: Tensor, found: Sequence[Tensor], *options: object) -> Sequence[Tensor]:
    return (scores,)


def _fake(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    count: Tensor | None,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor]:
    *rows, n = scores.shape
    return (scores.new_empty((*rows, k, n) if matrix else (*rows, k)),)


run = Fused(
    "network",
    options="Tensor? count, str? kind, str comparator, int k, bool matrix",
    outputs=1,
    forward=_run,
    keep=_keep,
    vjp=_vjp,
    fake=_fake,
)


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
) -> None:
    network = network_for(scores.shape[-1], k, kind)
    rows = scores.shape[:-1]
    temperature, stride = native.dense(temperature, rows)
    live = None if count is None else count.expand(rows).to(torch.int32).contiguous()
    low, high, outputs = _wires(network)
    native.call(
        "network",
        native.pointer(scores),
        native.pointer(temperature),
        native.pointer(live),
        low.ctypes.data,
        high.ctypes.data,
        outputs.ctypes.data,
        native.pointer(upstream),
        native.pointer(out),
        rows.numel(),
        network.n,
        network.k,
        network.size,
        stride,
        COMPARATORS.index(comparator),
        matrix,
        descending,
        scores.dtype is torch.float64,
        native.threads(),
    )


@lru_cache(maxsize=64)
def _wires(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The low and the high wires of all comparators, one layer after another, and the outputs."""
    none = np.zeros((2, 0), dtype=np.int32)
    low, high = np.concatenate([none, *network.comparators], axis=1).astype(np.int32)
    return low.copy(), high.copy(), np.array(network.outputs, dtype=np.int32)
