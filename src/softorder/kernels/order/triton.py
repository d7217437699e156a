"""Launches of ranks and sorts on a GPU, after the device's own sort.

Ranks and their gradients are one kernel each. A sort is made of the F-sums' kernels: its roots come
with their slopes, which the reference would sum up once more. So are the ranks of few long rows,
which several programs share, and everything about the uniform density.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from softorder.densities import BUILT_IN
from softorder.kernels._density_numbers import number_of
from softorder.kernels._operators import no_gradient
from softorder.kernels._triton import launch, per_row
from softorder.kernels._triton_compile import LENGTHS, Configuration, of_densities
from softorder.kernels.formulas import multiplied
from softorder.kernels.fsum.triton import factor_of, laplace_roots_of
from softorder.kernels.fsum.triton_given import Sources, Tile, pieces_of, sized, tile
from softorder.kernels.order import reference
from softorder.kernels.order.reference import all_values, sort_vjp
from softorder.kernels.order.triton_rank import rank_backward, rank_forward
from softorder.kernels.sort import sort as sort_scores
from softorder.kernels.sort.rows import ascending, rows_of

__all__ = ["configurations", "rank", "rank_vjp", "sort", "sort_vjp"]

_LAPLACE = number_of(BUILT_IN["laplace"])
_FORWARD, _BACKWARD, _HEATED = 512, 256, 128  # scores at a time: more would spill registers


def rank(
    scores: Tensor, temperature: Tensor, descending: bool, density: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Ranks; the sorted scores, and their indices."""
    size = _size(scores, _FORWARD)
    if size is None or density != _LAPLACE:
        return reference.rank(scores, temperature, descending, density)
    values, order = sort_scores(scores.contiguous())
    ranks, kept = torch.empty_like(values), torch.empty_like(order, dtype=torch.int32)
    _launch(
        rank_forward,
        size,
        (values, order),
        temperature,
        (ranks, kept),
        (descending,),
    )
    return ranks, values, kept


def rank_vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    density: int,
) -> tuple[Tensor, Tensor]:
    """With u = (x_i - x_j)/τ, g upstream: Σ_j (g_i - g_j) f(u)/τ, and -Σ_i g_i Σ_j u f(u)/τ."""
    values, order = (value.contiguous() for value in kept)
    size = _size(values, _HEATED if by_temperature else _BACKWARD)
    if size is None or density != _LAPLACE:
        settings = temperature, descending, by_temperature, density
        return reference.rank_vjp(upstream, kept, *settings)
    by_scores, heat = torch.empty_like(values), no_gradient(values)
    if by_temperature:
        heat = heat.new_empty(values.shape[:-1])
    _launch(
        rank_backward,
        size,
        (upstream.contiguous(), values, order),
        temperature,
        (by_scores, heat),
        (descending, by_temperature),
    )
    return by_scores, heat


def _size(values: Tensor, most: int) -> Tile | None:
    """The tile, for rows that one program takes; None if there are none."""
    n = values.shape[-1]
    if values.numel() == 0:
        return None
    size = sized(values.numel() // n, n, most)
    alone = pieces_of(values.numel() // n, n, size, values.device) == 1
    return size if alone else None


def _launch(
    kernel: object,
    size: Tile,
    inputs: tuple[Tensor, ...],
    temperature: Tensor,
    outputs: tuple[Tensor, ...],
    constants: tuple[bool, ...],
) -> None:
    values, n = inputs[-2], inputs[-2].shape[-1]
    rows, streamed = values.numel() // n, n > size.width
    tau, stride = per_row(temperature, values)
    sums = tau if not streamed else tau.new_empty(values.shape)
    launch(
        kernel,
        size.grid(rows, n)[:1],
        values.device,
        size.warps,
        *inputs,
        tau,
        *outputs,
        sums,
        rows,
        n,
        n.bit_length(),
        stride,
        *constants,
        size.height,
        size.width,
        streamed,
    )


def sort(scores: Tensor, temperature: Tensor, descending: bool, density: int) -> tuple[Tensor, ...]:
    """The values in order, and what contract.py lists."""
    if density != _LAPLACE:
        return reference.sort(scores, temperature, descending, density)
    values, order = sort_scores(scores.contiguous())
    rows = rows_of(values, order)
    centre, rest, slope = (torch.empty_like(values) for _ in range(3))
    segment = torch.empty_like(order, dtype=torch.int32)
    if values.numel() > 0:
        factor = factor_of(rows.values, rows.count)
        tau = multiplied(temperature, factor)
        x = Sources.of(factor * rows.values, None, None, tau, rows.count)
        laplace_roots_of(x, rows.places() + 0.5, centre, rest, segment, slope)
        centre, rest = centre / factor, rest / factor
    t = all_values(rows, ascending(centre + rest), descending)
    return t, values, order.int(), segment, rest, slope


# ---- what may be launched -----------------------------------------------------------------------


def configurations(dtype: str, lengths: Sequence[int] = LENGTHS) -> Iterator[Configuration]:
    """Every way in which the kernels are launched for rows of these lengths."""
    return of_densities(_of_density, dtype, lengths)


def _of_density(density: int, wide: bool, widths: Sequence[int]) -> Iterator[Configuration]:
    """Every way in which the kernels of ranks are launched for rows of any length."""
    x, numbers = "*fp64" if wide else "*fp32", ("i32",) * 4
    for name, most, gradient, heated in (
        ("soft ranks", _FORWARD, False, False),
        ("gradient of soft ranks", _BACKWARD, True, False),
        ("gradient τ of soft ranks", _HEATED, True, True),
    ):
        sizes = ((tile(n, most), n) for n in widths if density == 0)
        for size, streamed in dict.fromkeys((size, n > size.width) for size, n in sizes):
            there = (x, "*i64", "*fp64", x, "*i32", "*fp64", *numbers)
            back = (x, x, "*i32", "*fp64", x, "*fp64", "*fp64", *numbers)
            yield Configuration(
                f"{name}, {'more' if streamed else size.width} scores",
                rank_backward if gradient else rank_forward,
                back if gradient else there,
                (True, *((heated,) if gradient else ()), size.height, size.width, streamed),
                size.warps,
                size.height * size.width,
                str((2 + gradient) * (1 + streamed)),
                "1" if gradient else "2",
            )
