"""Launches of the Triton rows of permutations, and of their gradients."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from softorder.kernels import fsum
from softorder.kernels._density_numbers import density_of
from softorder.kernels._operators import no_gradient
from softorder.kernels._triton import interpreted, launch, per_row, power_of_two, processors
from softorder.kernels._triton_compile import LENGTHS, Configuration, of_densities
from softorder.kernels.formulas import factor_of, inverse, multiplied
from softorder.kernels.permutation.reference import levels_of
from softorder.kernels.permutation.triton_rows import (
    permutation_gradients,
    permutation_rows,
    permutation_slopes,
)
from softorder.kernels.sort.rows import sort_rows

_WIDTH = 256  # scores of a program, two for each of its threads
_LINES = 64  # of P that a program writes, so that few thresholds are met twice
_PARTS = 16  # sums over some of the thresholds that are added up afterwards, at most


def rows(
    scores: Tensor, temperature: Tensor, descending: bool, density: int, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first k rows, and centre and rest of their k + 1 thresholds."""
    x, n = scores.contiguous(), scores.shape[-1]
    order = sort_rows(x)
    factor = order.factor() if x.dtype is torch.float64 else None  # the kernels compute in it
    order, x, tau = order.in_range(x, temperature, factor)
    levels, law = levels_of(order, descending, k), density_of(density)
    centre, rest = fsum.invert(order.values.double(), levels, tau, law, count=order.count)
    centre, rest = centre.contiguous(), rest.contiguous()
    p = x.new_empty(*x.shape[:-1], k, n)
    if p.numel() == 0:
        return p, *_divided(centre, rest, factor)
    first, last = order.ranges(descending)
    tau, stride = per_row(tau, x)
    width, blocks = _blocks(n)
    launch(
        permutation_rows,
        (x.numel() // n * blocks, -(-k // _LINES)),
        x.device,
        _warps(width),
        x,
        first.contiguous(),
        last.contiguous(),
        order.spoil(torch.zeros_like(x[..., :1], dtype=torch.float64)),
        centre,
        rest,
        tau,
        p,
        k,
        n,
        blocks,
        _LINES,
        stride,
        density,
        descending,
        width,
    )
    return p, *_divided(centre, rest, factor)


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
    k: int,
) -> tuple[Tensor, Tensor]:
    """Sums over the scores for every threshold, then over the thresholds for every score."""
    scores, centre, rest = kept
    x, v, n = scores.contiguous(), upstream.contiguous(), scores.shape[-1]
    scale, out = inverse(temperature.to(x.device), centre.dtype), torch.zeros_like(x)
    if v.numel() == 0:
        return out, no_gradient(out)
    factor = factor_of(x) if x.dtype is torch.float64 else None
    if factor is not None:
        x, centre, rest = factor * x, factor * centre, factor * rest
        temperature = multiplied(temperature, factor)
    lines, (tau, stride) = x.numel() // n, per_row(temperature, x)
    width, blocks = _blocks(n)
    inputs = v, x, centre.contiguous(), rest.contiguous()
    constants = density, descending, width
    pieces = min(blocks, max(2 * processors(x.device) // (lines * (k + 1)), 1))
    piece = -(-blocks // pieces) * width
    sums = centre.new_empty(*centre.shape, 2, pieces)
    launch(
        permutation_slopes,
        (lines * (k + 1), pieces),
        x.device,
        _warps(width),
        *inputs,
        tau,
        sums,
        k,
        n,
        piece,
        stride,
        *constants,
    )
    slope, weighted = sums.sum(-1).unbind(-1)
    flat = slope < torch.finfo(slope.dtype).tiny
    mean = torch.where(flat, 0.0, weighted / torch.where(flat, 1.0, slope))
    parts = max(2 * processors(x.device) // (lines * blocks), 1)
    parts = min(parts, _PARTS, -(-(k + 1) // _LINES))
    found = mean.new_empty(parts, *x.shape)
    launch(
        permutation_gradients,
        (lines * blocks, parts),
        x.device,
        _warps(width),
        *inputs,
        mean,
        tau,
        found,
        lines,
        k,
        n,
        blocks,
        -(-(k + 1) // parts),
        stride,
        *constants,
    )
    by = found.sum(0) * scale
    by = torch.where(x.isnan().any(-1, keepdim=True), 0.0, by)  # NaN spoils its row
    return by.to(x.dtype), no_gradient(out)


def _divided(centre: Tensor, rest: Tensor, factor: Tensor | None) -> tuple[Tensor, Tensor]:
    return (centre, rest) if factor is None else (centre / factor, rest / factor)


def _blocks(n: int) -> tuple[int, int]:
    """How many scores a program holds, and how many programs share a row."""
    most = 2**13 if interpreted() else _WIDTH  # interpreted, a program takes its time anyway
    width = min(max(power_of_two(n), 32), most)
    return width, -(-n // width)


def _warps(width: int) -> int:
    return min(max(width // 64, 1), 4)


# ---- what may be launched -----------------------------------------------------------------------


def configurations(dtype: str, lengths: Sequence[int] = LENGTHS) -> Iterator[Configuration]:
    """Every way in which the kernels are launched for rows of these lengths."""
    return of_densities(_of_density, dtype, lengths)


def _of_density(density: int, wide: bool, widths: Sequence[int]) -> Iterator[Configuration]:
    """Every way in which the kernels are launched for rows of any length."""
    x, number, held = "*fp64" if wide else "*fp32", "i32", ("*fp64",) * 2
    for width in dict.fromkeys(min(max(power_of_two(n), 32), _WIDTH) for n in widths):
        constants, warps = (density, True, width), _warps(width)
        yield Configuration(
            f"rows of a permutation, {width} scores",
            permutation_rows,
            (x, "*i64", "*i64", "*fp64", *held, "*fp64", x, *(number,) * 5),
            constants,
            warps,
            width,
            "3 / 64 rows",
            "rows",
        )
        yield Configuration(
            f"slopes of a permutation, {width} scores",
            permutation_slopes,
            (x, x, *held, "*fp64", "*fp64", *(number,) * 4),
            constants,
            warps,
            width,
            "3 rows",
            "0",
        )
        yield Configuration(
            f"gradient of a permutation, {width} scores",
            permutation_gradients,
            (x, x, *held, *("*fp64",) * 3, *(number,) * 6),
            constants,
            warps,
            width,
            "rows",
            "1",
        )
