"""Calls of the compiled rows of permutations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _native, fsum
from softorder.kernels._density_numbers import density_of
from softorder.kernels._operators import no_gradient
from softorder.kernels.fsum.reference import invert as every_root
from softorder.kernels.permutation.reference import levels_of
from softorder.kernels.sort.rows import sort_rows


def rows(
    scores: Tensor, temperature: Tensor, descending: bool, density: int, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first k rows, and centre and rest of their k + 1 thresholds."""
    scores, n = scores.contiguous(), scores.shape[-1]
    rows = sort_rows(scores)
    factor = rows.factor() if scores.dtype is torch.float64 else None
    rows, x, tau = rows.in_range(scores, temperature, factor)
    levels = levels_of(rows, descending, k)
    centre, rest = _thresholds(rows.values.double(), levels, tau, rows.count, density)
    p = scores.new_empty(*scores.shape[:-1], k, n)
    _call("permutation_forward", x, centre, rest, tau, descending, density, p)
    if rows.finite is not None:
        p = rows.with_certain(x, p, descending)
    return p, *((centre, rest) if factor is None else (centre / factor, rest / factor))


def _thresholds(
    sources: Tensor, levels: Tensor, temperature: Tensor, count: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """By one solve for each where the sums of boxes would lose a digit: rows of P take as long."""
    law = density_of(density)
    if law.name in ("laplace", "uniform"):
        return fsum.invert(sources, levels, temperature, law, count=count)
    levels = levels.double().expand(*sources.shape[:-1], levels.shape[-1])
    return every_root(sources, levels, temperature, count, density)


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
    k: int,
) -> tuple[Tensor, Tensor]:
    scores, centre, rest = kept
    if not _check.finite(scores):  # NaN spoils its row, and no gradient passes
        upstream = torch.where(scores.isnan().any(-1)[..., None, None], 0.0, upstream)
    scores, upstream = scores.contiguous(), upstream.contiguous()
    out = torch.empty_like(scores)
    settings = temperature, descending, density
    _call("permutation_backward", scores, centre, rest, *settings, out, upstream)
    return out, no_gradient(out)


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
    temperature, stride = _native.dense(temperature, rows)
    _native.call(
        name,
        _native.pointer(scores),
        _native.pointer(centre),
        _native.pointer(rest),
        _native.pointer(temperature),
        _native.pointer(out),
        _native.pointer(upstream),
        rows.numel(),
        centre.shape[-1] - 1,
        n,
        stride,
        density,
        flip,
        scores.dtype is torch.float64,
        _native.threads(),
    )
