"""Soft comparator networks in one go, for CPU tensors.

The same numbers as methods/network_layers.py has, from a compiled kernel that takes rows through
the network side by side. Its backward pass starts from the scores again, so that nothing
else is kept: what it needs on its way, O(n k) for a few rows, is scratch. Not differentiable, but
with a vector-Jacobian product.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softorder.kernels import native
from softorder.networks import Network

_NETWORK = struct.Struct("@8P5N5i0P")  # struct Network of csrc/network.hpp, field by field

COMPARATORS = ("logistic", "cauchy", "reciprocal", "optimal")  # in the order of enum Comparator


class Circuit(NamedTuple):
    """A network, how its comparators swap, and what is wanted of it."""

    network: Network
    comparator: str
    matrix: bool  # the matrix (..., k, n) that maps scores to the outputs, or their values (..., k)
    live: Tensor | None = None  # per row: scores from here on take no part


class Found(NamedTuple):
    """Sorted values or rows of a permutation, and what the backward pass needs."""

    result: Tensor
    scores: Tensor


def serves(scores: Tensor, temperature: Tensor) -> bool:
    """Whether there is a compiled kernel for these scores."""
    return native.serves(scores, temperature)


def run(scores: Tensor, temperature: Tensor, descending: bool, *, circuit: Circuit) -> Found:
    """What comes out of the network."""
    scores, network = scores.contiguous(), circuit.network
    shape = (network.k, network.n) if circuit.matrix else (network.k,)
    out = scores.new_empty(*scores.shape[:-1], *shape)
    _call(circuit, scores, None, out, temperature, descending)
    return Found(out, scores)


def vjp(
    upstream: Tensor, saved: Found, temperature: Tensor, descending: bool, *, circuit: Circuit
) -> Tensor:
    """The gradient of the scores."""
    out = torch.empty_like(saved.scores)
    _call(circuit, saved.scores, upstream.contiguous(), out, temperature, descending)
    return out


def _call(
    circuit: Circuit,
    scores: Tensor,
    upstream: Tensor | None,
    out: Tensor,
    temperature: Tensor,
    descending: bool,
) -> None:
    network, comparator, matrix, live = circuit
    rows = scores.shape[:-1]
    temperature, stride = native.dense(temperature, rows)
    count = None if live is None else live.expand(rows).to(torch.int32).contiguous()
    low, high, outputs = _wires(network)
    native.call(
        "network",
        _NETWORK.pack(
            native.pointer(scores),
            native.pointer(temperature),
            native.pointer(count),
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
        ),
    )


@lru_cache(maxsize=64)
def _wires(network: Network) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The low and the high wires of all comparators, one layer after another, and the outputs."""
    none = np.zeros((2, 0), dtype=np.int32)
    low, high = np.concatenate([none, *network.comparators], axis=1).astype(np.int32)
    return low.copy(), high.copy(), np.array(network.outputs, dtype=np.int32)
