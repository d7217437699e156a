"""Launches of the Triton networks.

Rows whose wires fit a tile go through all layers in one launch; longer ones are left to plain
torch. Infinities and NaN are completed around the kernels, in plain torch too. Nothing is kept for
the way back but the scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from softorder.kernels._operators import no_gradient
from softorder.kernels._triton import interpreted, launch, per_row, power_of_two, processors
from softorder.kernels._triton_compile import LENGTHS, Configuration
from softorder.kernels.network import reference
from softorder.kernels.network.comparators import COMPILED
from softorder.kernels.network.triton_layers import (
    network_matrix,
    network_matrix_vjp,
    network_values,
    network_values_vjp,
)
from softorder.kernels.network.wires import Wires
from softorder.kernels.sort.completion import Completion
from softorder.networks.choice import network_for

LONGEST = 4096  #: so many wires fit a tile; of float64, or for a matrix, half as many
_NEAR = 64  # wires whose values the threads of a warp exchange
_SCRATCH = 2**26  # bytes, so that caches hold them


class Tile(NamedTuple):
    """The values that a program holds at a time, and how many warps it has."""

    height: int  # rows, of scores or of P
    width: int  # wires, a power of two
    warps: int

    @property
    def near(self) -> bool:
        return self.width <= _NEAR


def tile(n: int, matrix: bool) -> Tile:
    """For networks of n wires: one row of scores, or several short ones; or some rows of P."""
    width = max(power_of_two(n), 16)
    height = max((1024 if matrix else 256) // width, 1)
    if not matrix and width > _NEAR:
        height = 1
    return Tile(height, width, min(max(height * width // 256, 1), 16))


def run(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor]:
    """The first k values (..., k), or the matrix (..., k, n) that maps scores to them."""
    settings = temperature, descending, kind, comparator, k, matrix
    if not _fits(scores, matrix):
        return reference.run(scores, *settings)
    exceptions = Completion.of(scores, descending)
    wires = Wires(exceptions.only_finite(scores), exceptions.live)
    ask = Problem.of(wires, temperature, descending, kind, comparator, k)
    if matrix:
        return (exceptions.complete_rows(wires.to_origin(_rows(ask))),)
    return (exceptions.complete_values(_values(ask)),)


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
    """Gradients of the scores; the values on the wires are computed anew."""
    scores = kept[0]
    if not _fits(scores, matrix):
        settings = temperature, descending, by_temperature, kind, comparator, k, matrix
        return reference.vjp(upstream, kept, *settings)
    exceptions = Completion.of(scores, descending)
    wires = Wires(exceptions.only_finite(scores), exceptions.live)
    ask = Problem.of(wires, temperature, descending, kind, comparator, k)
    if matrix:
        found = _rows_vjp(ask, wires.to_wires(exceptions.finite_rows(upstream)).contiguous())
    else:
        found = _values_vjp(ask, exceptions.finite_values(upstream).contiguous())
    by_scores = torch.empty_like(found).scatter(-1, wires.order, found)
    by_scores = torch.where(exceptions.live, by_scores, 0.0)
    return by_scores, no_gradient(by_scores)


def _fits(scores: Tensor, matrix: bool) -> bool:
    wide = scores.dtype is torch.float64
    return scores.numel() > 0 and scores.shape[-1] <= _longest(wide, matrix)


def _longest(wide: bool, matrix: bool) -> int:
    return LONGEST // 2 if wide or matrix else LONGEST


# ---- launches -----------------------------------------------------------------------------------


class Plan(NamedTuple):
    """A network on a device; every wire of a tile has an entry."""

    partners: Tensor  # (depth, width): whom a wire meets in a layer
    outputs: Tensor  # on which wire a value comes out
    places: Tensor  # which value comes out on a wire; k for none
    depth: int


@lru_cache(maxsize=64)
def _plan(n: int, k: int, kind: str | None, device: torch.device) -> Plan:
    network, width = network_for(n, k, kind), max(power_of_two(n), 16)
    partners = np.tile(np.arange(width, dtype=np.int32), (network.depth, 1))
    for layer, (low, high) in zip(partners, network.comparators, strict=True):
        layer[low], layer[high] = high, low
    outputs = np.zeros(width, dtype=np.int32)
    places = np.full(width, k, dtype=np.int32)
    outputs[:k] = network.outputs
    places[outputs[:k]] = np.arange(k)
    tables = [torch.from_numpy(table).to(device) for table in (partners, outputs, places)]
    return Plan(tables[0], tables[1], tables[2], network.depth)


class Problem(NamedTuple):
    """What the kernels are given, there and back."""

    x: Tensor
    inputs: tuple[Tensor, ...]  # scores, how many are there, temperature
    temperature_stride: int
    plan: Plan
    k: int
    comparator: int
    descending: bool

    @staticmethod
    def of(
        wires: Wires,
        temperature: Tensor,
        descending: bool,
        kind: str | None,
        comparator: str,
        k: int,
    ) -> Problem:
        x, count = wires.scores.contiguous(), wires.count.to(torch.int32).contiguous()
        temperature, stride = per_row(temperature, x)
        plan = _plan(x.shape[-1], k, kind, x.device)
        number = COMPILED.index(comparator)
        return Problem(x, (x, count, temperature), stride, plan, k, number, descending)

    @property
    def rows(self) -> int:
        return self.x.shape[:-1].numel()

    def launch(
        self, kernel: Any, programs: int, size: Tile, before: tuple, after: tuple, chunk: int = 0
    ) -> None:
        numbers = [self.rows, self.x.shape[-1], self.k, self.plan.depth, self.temperature_stride]
        if chunk:
            numbers.insert(4, chunk)
        options = self.comparator, self.descending, size.height, size.width, size.near
        arguments = *before, *self.inputs, self.plan.partners, *after, *numbers, *options
        launch(kernel, (programs,), self.x.device, size.warps, *arguments)


def _values(ask: Problem) -> Tensor:
    x, size = ask.x, _tile(ask, matrix=False)
    programs = -(-ask.rows // size.height)
    out = x.new_empty(*x.shape[:-1], ask.k)
    scratch = x.new_empty(1 if size.near else programs * size.height * size.width)
    ask.launch(network_values, programs, size, (), (ask.plan.outputs, scratch, out))
    return out


def _values_vjp(ask: Problem, upstream: Tensor) -> Tensor:
    x, size = ask.x, _tile(ask, matrix=False)
    each = (ask.plan.depth + 1) * size.height * size.width
    programs = _programs(ask, -(-ask.rows // size.height), each)
    out, scratch = torch.empty_like(x), x.new_empty(programs * each)
    ask.launch(network_values_vjp, programs, size, (upstream,), (ask.plan.places, scratch, out))
    return out


def _rows(ask: Problem) -> Tensor:
    x, size = ask.x, _tile(ask, matrix=True)
    chunk = _chunk(ask, size)
    each = (ask.plan.depth + size.height) * size.width
    programs = _programs(ask, ask.rows * -(-ask.k // chunk), each)
    out = x.new_empty(*x.shape[:-1], ask.k, x.shape[-1])
    scratch = x.new_empty(programs * each)
    ask.launch(network_matrix, programs, size, (), (ask.plan.outputs, scratch, out), chunk)
    return out


def _rows_vjp(ask: Problem, upstream: Tensor) -> Tensor:
    x, size = ask.x, _tile(ask, matrix=True)
    chunk = _chunk(ask, size)
    chunks = -(-ask.k // chunk)
    each = (size.height + ask.plan.depth * (2 + size.height)) * size.width
    programs = _programs(ask, ask.rows * chunks, each)
    out = x.new_empty(*x.shape[:-1], chunks, x.shape[-1])
    scratch = x.new_empty(programs * each)
    outputs = ask.plan.outputs, scratch, out
    ask.launch(network_matrix_vjp, programs, size, (upstream,), outputs, chunk)
    return out.sum(-2)


def _programs(ask: Problem, wanted: int, each: int) -> int:
    """As many as there is work for, as a device runs, and as have room for their scratch."""
    room = _SCRATCH // (each * ask.x.element_size())
    return max(min(wanted, 4 * processors(ask.x.device), room), 1)


def _chunk(ask: Problem, size: Tile) -> int:
    """How many rows of P a program takes: all of a row of scores, if there are many of these."""
    chunks = 1 if interpreted() else max(2 * processors(ask.x.device) // ask.rows, 1)
    return -(-ask.k // (chunks * size.height)) * size.height


def _tile(ask: Problem, matrix: bool) -> Tile:
    size = tile(ask.x.shape[-1], matrix)
    if interpreted():  # there a program takes its time, whatever its size
        most = max(2**16 // size.width, 1)
        return size._replace(height=min(power_of_two(ask.k if matrix else ask.rows), most))
    return size


# ---- what may be launched -----------------------------------------------------------------------


def configurations(dtype: str, lengths: Sequence[int] = LENGTHS) -> Iterator[Configuration]:
    """Every way in which the kernels are launched for networks of so many wires."""
    if dtype not in ("fp32", "fp64"):
        return
    x = f"*{dtype}"
    inputs = (x, "*i32", "*fp64", "*i32", "*i32", x, x)
    kernels: tuple[tuple[str, Any, tuple[str, ...], int], ...] = (
        ("values", network_values, inputs, 5),
        ("gradient of values", network_values_vjp, (x, *inputs), 5),
        ("matrix", network_matrix, inputs, 6),
        ("gradient of matrix", network_matrix_vjp, (x, *inputs), 6),
    )
    for number, comparator in enumerate(COMPILED):
        for name, kernel, types, numbers in kernels:
            matrix = kernel in (network_matrix, network_matrix_vjp)
            longest = _longest(dtype == "fp64", matrix)
            sizes = (tile(n, matrix) for n in lengths if n <= longest)
            for size in dict.fromkeys(sizes):
                for descending in (False, True):
                    down = "descending" if descending else "ascending"
                    yield Configuration(
                        f"{comparator}: {name}, {down}, {size.width} wires",
                        kernel,
                        (*types, *("i32",) * numbers),
                        (number, descending, *size[:2], size.near),
                        size.warps,
                        size.height * size.width,
                        str(types.count(x) - 2),
                        "1",
                    )
