"""Launches of the Triton rows of SoftSort and NeuralSort, after the device's own sort."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels._operators import no_gradient
from softorder.kernels._triton import interpreted, launch, per_row, power_of_two, processors
from softorder.kernels._triton_compile import LENGTHS, Configuration
from softorder.kernels.row_softmax.triton_rows import (
    row_softmax_above,
    row_softmax_columns,
    row_softmax_forward,
    row_softmax_order,
    row_softmax_sums,
)
from softorder.kernels.sort import sort
from softorder.kernels.sort.rows import sums_before, ties


class Tile(NamedTuple):
    """The part of P that a program holds at a time, and how many warps it has."""

    height: int  # rows of P
    width: int  # scores, a power of two
    warps: int


_LONGEST = 16384  # so many float32 scores stay in the registers of 16 warps, of float64 a quarter
_TILE = 1024  # entries of P that 4 warps take together
_STREAMED = 4096  # scores of longer rows that are taken at a time, of float64 half


def tile(n: int, wide: bool, neural: bool) -> Tile:
    """For rows of n scores, of float64 if they are wide. Longer rows than it are streamed.

    NeuralSort's logits are float64 in either case.
    """
    size = 1 + (wide or neural)
    width = max(power_of_two(n), 16)
    if width > _LONGEST // size**2:
        width = _STREAMED // size
    height = max(_TILE // width, 1)
    return Tile(height, width, min(max(height * width // 256, 1), 16 // size))


def block(n: int) -> Tile:
    """For sums over rows of P, and over its columns."""
    width = min(max(power_of_two(n), 16), 512)
    return Tile(_TILE // width, width, 4)


def rows(
    scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The first k rows (..., k, n), the places of the finite scores in order, and their number."""
    x = scores.contiguous()
    *shape, n = x.shape
    p, order = x.new_empty(*shape, k, n), torch.empty_like(x, dtype=torch.int32)
    taken = order.new_empty(shape)
    count = taken.numel()
    if p.numel() == 0:
        return p, order.zero_(), taken.zero_()
    ordered = sort(x)
    scan = _scan(n)
    settings = order, taken, n, descending, scan
    launch(row_softmax_order, (count,), x.device, 4, ordered.values, ordered.order, *settings)
    ask = Problem.of(x, order, taken, temperature, descending, family)
    size = _tile(tile(n, x.dtype is torch.float64, ask.neural), k)
    chunk = _chunk(count, k, size, x.device)
    launch(
        row_softmax_forward,
        (count, -(-k // chunk)),
        x.device,
        size.warps,
        *ask.inputs,
        p,
        k,
        n,
        chunk,
        ask.temperature_stride,
        ask.neural,
        descending,
        size.height,
        size.width,
        n > size.width,
    )
    return p, order, taken


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    family: str,
    k: int,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; P is computed anew."""
    scores, _, order, taken = kept
    x, v = scores.contiguous(), upstream.contiguous()
    n, count = x.shape[-1], taken.numel()
    if v.numel() == 0:
        return torch.zeros_like(x), no_gradient(x)
    ask = Problem.of(x, order, taken, temperature, descending, family)
    sums = x.new_empty(3, count, k, dtype=torch.float64)
    found = x.new_empty(1 + ask.neural, count, n, dtype=torch.float64)
    size = _tile(block(n), k)
    numbers = k, n, ask.temperature_stride, ask.neural, descending, size.height, size.width
    grid = (count, -(-k // size.height))
    launch(row_softmax_sums, grid, x.device, size.warps, v, *ask.inputs, sums, *numbers)
    grid = (count, -(-n // size.width))
    launch(row_softmax_columns, grid, x.device, size.warps, v, *ask.inputs, sums, found, *numbers)
    return _finished(x, order, taken, sums, found, descending, ask.neural), no_gradient(x)


def _finished(
    x: Tensor,
    order: Tensor,
    taken: Tensor,
    sums: Tensor,
    found: Tensor,
    descending: bool,
    neural: bool,
) -> Tensor:
    """Adds to what the columns found what other scores depend on; what ties shares it equally.

    With a score's equals at the places [p, q) in order and c = Σ D, NeuralSort adds (p + q) c less
    the sums of c from p on and from q on; SoftSort the mean of what the anchors at [p, q) got.
    """
    n, order = x.shape[-1], order.long()
    live = torch.arange(n, device=x.device) < taken.unsqueeze(-1)
    ordered = x.gather(-1, order)
    first, last = ties(torch.where(live, -ordered if descending else ordered, math.inf))
    found = found.view(-1, *x.shape)
    one = torch.where(live, found[0].gather(-1, order), 0.0)
    if neural:
        before, upto = sums_before(one, first, last)
        rest = 2 * one.sum(-1, keepdim=True) - before - upto
        gradient = found[1].gather(-1, order) + (first + last) * one - rest
        gradient = gradient if descending else -gradient
    else:
        anchors = torch.zeros_like(one)
        k = min(sums.shape[-1], n)
        anchors[..., :k] = sums[2].view(*x.shape[:-1], -1)[..., :k]
        before, upto = sums_before(torch.where(live, anchors, 0.0), first, last)
        gradient = one + (upto - before) / (last - first)
    gradient = torch.where(live, gradient, 0.0).to(x.dtype)
    return torch.empty_like(x).scatter(-1, order, gradient)


class Problem(NamedTuple):
    """What the kernels are given, there and back."""

    inputs: tuple[Tensor, ...]  # scores, order, taken, U, temperature
    temperature_stride: int
    neural: bool

    @staticmethod
    def of(
        x: Tensor, order: Tensor, taken: Tensor, temperature: Tensor, descending: bool, family: str
    ) -> Problem:
        neural, n = family == "neuralsort", x.shape[-1]
        above = torch.empty_like(x, dtype=torch.float64) if neural else x
        if neural:
            settings = n, descending, _scan(n)
            grid = (taken.numel(),)
            launch(row_softmax_above, grid, x.device, 4, x, order, taken, above, *settings)
        temperature, stride = per_row(temperature, x)
        return Problem((x, order, taken, above, temperature), stride, neural)


def _scan(n: int) -> int:
    """How many scores a program takes at a time along a row."""
    return 64 if n <= 64 else 1024


def _chunk(rows: int, k: int, size: Tile, device: torch.device) -> int:
    """How many rows of P a program writes: all that belong to a row of scores, if there are many.

    Whole tiles of them, so that x is read once for as many as there are.
    """
    programs = 1 if interpreted() else max(2 * processors(device) // rows, 1)
    return -(-k // (programs * size.height)) * size.height


def _tile(size: Tile, k: int) -> Tile:
    if interpreted():  # there a program takes its time, whatever its size
        return size._replace(height=min(power_of_two(k), max(2**16 // size.width, 1)))
    return size


# ---- what may be launched -----------------------------------------------------------------------


def configurations(dtype: str, lengths: Sequence[int] = LENGTHS) -> Iterator[Configuration]:
    """Every way in which the kernels are launched for rows of these lengths."""
    if dtype in ("fp32", "fp64"):
        for descending in (False, True):
            for family in ("softsort", "neuralsort"):
                yield from _of_family(family, f"*{dtype}", descending, lengths)
            yield from _of_order(f"*{dtype}", descending, lengths)


def _of_family(
    family: str, x: str, descending: bool, lengths: Sequence[int]
) -> Iterator[Configuration]:
    neural, down = family == "neuralsort", "descending" if descending else "ascending"
    inputs = (x, "*i32", "*i32", "*fp64" if neural else x, "*fp64")
    sizes = ((tile(n, x == "*fp64", neural), n) for n in lengths)
    for size, streamed in dict.fromkeys((size, n > size.width) for size, n in sizes):
        yield Configuration(
            f"{family}: rows, {down}, {'more' if streamed else size.width} scores",
            row_softmax_forward,
            (*inputs, x, *("i32",) * 4),
            (neural, descending, size.height, size.width, streamed),
            size.warps,
            size.height * size.width,
            f"2/{size.height}" if streamed else "1/k",
            "1",
        )
    for size in dict.fromkeys(block(n) for n in lengths):
        for name, kernel, outputs in (
            ("sums of rows", row_softmax_sums, ("*fp64",)),
            ("sums of columns", row_softmax_columns, ("*fp64", "*fp64")),
        ):
            yield Configuration(
                f"{family}: {name}, {down}, {size.width} scores",
                kernel,
                (x, *inputs, *outputs, *("i32",) * 3),
                (neural, descending, size.height, size.width),
                size.warps,
                size.height * size.width,
                "1",
                "0",
            )


def _of_order(x: str, descending: bool, lengths: Sequence[int]) -> Iterator[Configuration]:
    down = "descending" if descending else "ascending"
    for width in dict.fromkeys(map(_scan, lengths)):
        for name, kernel, types in (
            ("order", row_softmax_order, (x, "*i64", "*i32", "*i32", "i32")),
            ("sums above", row_softmax_above, (x, "*i32", "*i32", "*fp64", "i32")),
        ):
            constants = descending, width
            label = f"{name}, {down}, {width} scores"
            yield Configuration(label, kernel, types, constants, 4, width, "1", "1")
