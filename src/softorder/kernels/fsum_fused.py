"""Soft ranks and the soft sort in one go, for CPU tensors and the Laplace density.

The same numbers as sort, `fsum` or `invert`, and scatter would give, from compiled kernels that
keep a row in the cache from the first step to the last. The rows may hold anything: -inf is
absent and goes last, +inf is certain, NaN spoils its row. Nothing here is differentiable, but
there is a vector-Jacobian product of everything: methods/fsum.py builds on it in eager mode.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.densities import BUILT_IN, Density
from softorder.kernels import native

_ORDER = struct.Struct("@9P3N3i0P")  # struct SoftOrder of csrc/order.hpp, field by field
_MOST = 2**31 - 1  # indices are int32


def serves(scores: Tensor, density: Density) -> bool:
    """Whether there is a compiled kernel for these scores."""
    return (
        density is BUILT_IN["laplace"]
        and scores.device.type == "cpu"
        and scores.shape[-1] <= _MOST
        and native.enabled()
    )


class Ranks(NamedTuple):
    """Soft ranks, and what their backward pass needs: the sorted scores and their indices."""

    ranks: Tensor
    values: Tensor
    order: Tensor


class SoftlySorted(NamedTuple):
    """t_j with FSum(t_j) = j - 1/2, and what the backward pass needs.

    `segment` counts the sources below t_j, `rest` is its distance from the one to which it is drawn
    (negative or -0: from the one above), `slope` is Σ_i f((t_j - x_i)/τ). These are in ascending
    order, also where t is not.
    """

    t: Tensor
    values: Tensor
    order: Tensor
    segment: Tensor
    rest: Tensor
    slope: Tensor


def rank(scores: Tensor, temperature: Tensor, descending: bool) -> Ranks:
    """1/2 + Σ_j F((x_i - x_j)/τ) over the last axis."""
    scores = scores.contiguous()
    ranks, values = torch.empty_like(scores), torch.empty_like(scores)
    order = torch.empty_like(scores, dtype=torch.int32)
    _call("soft_rank_forward", temperature, descending, ranks, scores, None, values, order)
    return Ranks(ranks, values, order)


def rank_vjp(upstream: Tensor, saved: Ranks, temperature: Tensor, descending: bool) -> Tensor:
    """The gradient of the scores."""
    _, values, order = saved
    out, upstream = torch.empty_like(values), upstream.contiguous()
    _call("soft_rank_backward", temperature, descending, out, None, upstream, values, order)
    return out


def sort(scores: Tensor, temperature: Tensor, descending: bool) -> SoftlySorted:
    """FSum⁻¹(j - 1/2) over the last axis."""
    scores = scores.contiguous()
    t, values, rest, slope = (torch.empty_like(scores) for _ in range(4))
    order, segment = (torch.empty_like(scores, dtype=torch.int32) for _ in range(2))
    roots = segment, rest, slope
    _call("soft_sort_forward", temperature, descending, t, scores, None, values, order, *roots)
    return SoftlySorted(t, values, order, *roots)


def sort_vjp(
    upstream: Tensor, saved: SoftlySorted, temperature: Tensor, descending: bool
) -> Tensor:
    """The gradient of the scores."""
    _, *others = saved
    out, upstream = torch.empty_like(saved.values), upstream.contiguous()
    _call("soft_sort_backward", temperature, descending, out, None, upstream, *others)
    return out


def _call(
    name: str,
    temperature: Tensor,
    descending: bool,
    out: Tensor,
    scores: Tensor | None,
    upstream: Tensor | None,
    *saved: Tensor,
) -> None:
    rows, n = out.shape[:-1], out.shape[-1]
    temperature, stride = native.dense(temperature, rows)
    pointers = [v.data_ptr() for v in saved]
    pointers += [0] * (5 - len(pointers))
    native.call(
        name,
        _ORDER.pack(
            0 if scores is None else scores.data_ptr(),
            0 if upstream is None else upstream.data_ptr(),
            temperature.data_ptr(),
            out.data_ptr(),
            *pointers,
            rows.numel(),
            n,
            stride,
            descending,
            out.dtype is torch.float64,
            native.threads(),
        ),
    )
