"""Soft ranks, the soft sort and soft permutations in one go, for CPU tensors.

The same numbers as sort, `fsum` or `invert`, and scatter would give, from compiled kernels that
keep a row in the cache from the first step to the last: ranks and the sort for the Laplace
density, whatever the rows hold (-inf is absent and goes last, +inf is certain, NaN spoils its row),
permutations for every density and finite scores. Nothing here is differentiable, but everything
has a vector-Jacobian product: methods/fused.py builds on it.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _check
from softorder.densities import BUILT_IN, Density
from softorder.kernels import fsum, native, ordering
from softorder.kernels.numbered import number_of

_ORDER = struct.Struct("@9P3N3i0P")  # struct SoftOrder of csrc/order.hpp, field by field
_PERMUTATION = struct.Struct("@6P4N4i0P")  # struct Permutation of csrc/permutation.hpp


def serves(scores: Tensor, temperature: Tensor, density: Density) -> bool:
    """Whether there is a compiled kernel for the ranks and the sort of these scores."""
    laplace = density is BUILT_IN["laplace"]
    return laplace and native.serves(scores, temperature, most=native.INT32)


def serves_permutation(scores: Tensor, temperature: Tensor, density: Density) -> bool:
    """Whether there is one for their permutations; it wants finite scores."""
    known = any(density is law for law in BUILT_IN.values())
    return known and native.serves(scores, temperature) and _check.finite(scores)


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


class Permutation(NamedTuple):
    """A soft permutation, and what its backward pass needs: the scores and the thresholds."""

    p: Tensor
    scores: Tensor
    centre: Tensor
    rest: Tensor


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


def permutation(
    scores: Tensor, temperature: Tensor, descending: bool, *, density: Density, k: int
) -> Permutation:
    """P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ) with FSum(t_j) = j: the first k rows."""
    scores, n = scores.contiguous(), scores.shape[-1]
    levels = torch.arange(k + 1, device="cpu") + (n - k if descending else 0)
    sources = ordering.sort(scores).values.double()
    centre, rest = fsum.invert(sources, levels, temperature, density)
    p = scores.new_empty(*scores.shape[:-1], k, n)
    found = Permutation(p, scores, centre, rest)
    _call_permutation("permutation_forward", found, temperature, descending, density, out=p)
    return found


def permutation_vjp(
    upstream: Tensor,
    saved: Permutation,
    temperature: Tensor,
    descending: bool,
    *,
    density: Density,
) -> Tensor:
    """The gradient of the scores."""
    out, upstream = torch.empty_like(saved.scores), upstream.contiguous()
    _call_permutation(
        "permutation_backward", saved, temperature, descending, density, out=out, upstream=upstream
    )
    return out


def _call_permutation(
    name: str,
    found: Permutation,
    temperature: Tensor,
    flip: bool,
    density: Density,
    *,
    out: Tensor,
    upstream: Tensor | None = None,
) -> None:
    scores = found.scores
    rows, n = scores.shape[:-1], scores.shape[-1]
    temperature, stride = native.dense(temperature, rows)
    native.call(
        name,
        _PERMUTATION.pack(
            native.pointer(scores),
            native.pointer(found.centre),
            native.pointer(found.rest),
            native.pointer(temperature),
            native.pointer(out),
            native.pointer(upstream),
            rows.numel(),
            found.centre.shape[-1] - 1,
            n,
            stride,
            number_of(density),
            flip,
            scores.dtype is torch.float64,
            native.threads(),
        ),
    )


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
    pointers = [native.pointer(v) for v in saved]
    pointers += [0] * (5 - len(pointers))
    native.call(
        name,
        _ORDER.pack(
            native.pointer(scores),
            native.pointer(upstream),
            native.pointer(temperature),
            native.pointer(out),
            *pointers,
            rows.numel(),
            n,
            stride,
            descending,
            out.dtype is torch.float64,
            native.threads(),
        ),
    )
