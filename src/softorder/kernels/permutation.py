"""Rows of soft permutations in one go, for CPU tensors and every density that is built in.

    P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ)    with    FSum(t_j) = j

The same numbers as methods/fsum.py has: a sort, the thresholds of `fsum.invert`, and compiled
kernels for the entries and for the vector-Jacobian product. Infinite scores have no part in
these: the rows and columns of what is certain (+inf) and of what is absent (-inf) are put in
afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels import fsum, native
from softorder.kernels._operators import Fused, no_gradient
from softorder.kernels.numbered import density_of
from softorder.kernels.sorted_rows import sort_rows


def _rows(
    scores: Tensor, temperature: Tensor, descending: bool, density: int, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first k rows, and centre and rest of their k + 1 thresholds."""
    scores, n = scores.contiguous(), scores.shape[-1]
    rows = sort_rows(scores)
    levels = torch.arange(k + 1, device="cpu")
    if descending:
        levels = levels + (rows.available - k)
    centre, rest = fsum.invert(
        rows.values.double(), levels, temperature, density_of(density), count=rows.count
    )
    p = scores.new_empty(*scores.shape[:-1], k, n)
    _call("permutation_forward", scores, centre, rest, temperature, descending, density, p)
    if rows.finite is not None:
        p = rows.with_certain(scores, p, descending)
    return p, centre, rest


def _vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
    k: int,
) -> tuple[Tensor, Tensor]:
    scores, centre, rest = kept
    scores, upstream = scores.contiguous(), upstream.contiguous()
    out = torch.empty_like(scores)
    settings = temperature, descending, density
    _call("permutation_backward", scores, centre, rest, *settings, out, upstream)
    return out, no_gradient(out)


def _keep(scores: Tensor, found: Sequence[Tensor], density: int, k: int) -> Sequence[Tensor]:
    return scores, *found[1:]


def _fake(
    scores: Tensor, temperature: Tensor, descending: bool, density: int, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    *rows, n = scores.shape
    centre, rest = (scores.new_empty((*rows, k + 1), dtype=torch.float64) for _ in range(2))
    return scores.new_empty((*rows, k, n)), centre, rest


permutation = Fused(
    "soft_permutation",
    options="int density, int k",
    outputs=3,
    forward=_rows,
    keep=_keep,
    vjp=_vjp,
    fake=_fake,
)


def _call(
    name: str,
    scores: Tensor,
    centre: Tensor,
    rest: Tensor,
    temperature: Tensor,
    flip: bool,
    density: int,
    out: Tensor,
    upstream: Tensor | None = None,
) -> None:
    rows, n = scores.shape[:-1], scores.shape[-1]
    temperature, stride = native.dense(temperature, rows)
    native.call(
        name,
        native.pointer(scores),
        native.pointer(centre),
        native.pointer(rest),
        native.pointer(temperature),
        native.pointer(out),
        native.pointer(upstream),
        rows.numel(),
        centre.shape[-1] - 1,
        n,
        stride,
        density,
        flip,
        scores.dtype is torch.float64,
        native.threads(),
    )
