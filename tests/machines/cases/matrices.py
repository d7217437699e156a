"""Calls of the kernels that write rows of a soft permutation: F-sums, networks, row softmax.

What the backward passes read was written by a forward pass on the recording machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

import softorder as so
from softorder.densities import BUILT_IN
from softorder.kernels import _native, fsum, row_softmax
from softorder.kernels.network import reference as network_reference
from softorder.kernels.network.comparators import COMPILED
from softorder.kernels.network.cpu import _wires
from softorder.kernels.row_softmax import reference as rows_reference
from softorder.kernels.row_softmax.cpu import FAMILIES
from softorder.networks.choice import network_for
from softorder.relaxations.row_softmax import NeuralSort, RowSoftmaxMethod, SoftSort
from tests.machines.calls import Call, Expected, Recipe, Unchecked, Value, later
from tests.machines.rows import (
    DTYPES,
    MANY,
    MILD,
    cycled,
    gradient_of,
    is_wide,
    one_or_all,
    scores,
    short,
    smooth_scores,
    stride,
    upstream_for,
)
from tests.machines.tolerances import allowed, largest


def recipes() -> Iterator[Recipe]:
    for density, dtype in product(BUILT_IN, DTYPES):
        yield from _permutations(density, dtype)
    for comparator, dtype, matrix in product(COMPILED, DTYPES, (0, 1)):
        yield from _networks(comparator, dtype, matrix)
    for family, dtype in product((SoftSort(), NeuralSort()), DTYPES):
        yield from _row_softmaxes(family, dtype)


# ---- permutations by F-sums ----------------------------------------------------------------------


def _permutations(density: str, dtype: torch.dtype) -> Iterator[Recipe]:
    forward, backward = "permutation_forward", "permutation_backward"
    for turn, (n, k) in enumerate(((1, 1), (16, 16), (65, 4), (300, 3))):
        x, flip = scores(n, dtype, ("normal", "cauchy", "ties")), turn % 2
        tau = one_or_all(turn, (1e-3, 1.0, 1e3), len(x))
        yield later(forward, _permutation, density, x, k, tau, flip)
    for turn, (n, k) in enumerate(((2, 2), (17, 17), (100, 5))):
        x, flip = smooth_scores(n, dtype), turn % 2
        tau = one_or_all(turn, (0.5, 2.0, 20.0), len(x))
        yield later(backward, _permutation, density, x, k, tau, flip, backward=True)
    if density == "laplace":  # threads
        x, tau = smooth_scores(MANY[1], dtype, MANY[0]), torch.tensor([1.0], dtype=torch.float64)
        yield later(forward, _permutation, density, x, 2, tau, 1)
        yield later(backward, _permutation, density, x, 2, tau, 1, backward=True)


def _permutation(
    density: str,
    x: Tensor,
    k: int,
    tau: Tensor,
    flip: int,
    *,
    backward: bool = False,
) -> Call:
    rows, n = x.shape
    column = tau.expand(rows)

    def plain(at: Tensor) -> Tensor:
        options = {"method": density, "temperature": column, "descending": bool(flip)}
        return so.soft_permutation(at, k=k, **options)

    levels = (torch.arange(k + 1) + (n - k if flip else 0)).double()
    with _native.use("torch"):
        centre, rest = fsum.invert(x.double().sort().values, levels, column, density)
        out = plain(x.double())
        upstream = upstream_for(out, x.dtype) if backward else None
        answer, unit = "permutation", torch.ones(rows)
        if upstream is not None:
            out = gradient_of(plain, x, upstream)
            answer, unit = "permutation gradient", largest(out, 1 / column)
    values: dict[str, Value] = {
        "scores": x,
        "centre": centre,
        "rest": rest,
        "temperature": tau,
        "out": Expected(out, x.dtype, allowed(answer, x.dtype, unit)),
        "upstream": upstream,
        "rows": rows,
        "k": k,
        "n": n,
        "temperature_stride": stride(tau, rows),
        "density": list(BUILT_IN).index(density),
        "flip": flip,
        "wide": is_wide(x.dtype),
    }
    name = "permutation_backward" if backward else "permutation_forward"
    return Call(name, f"{density} {short(x.dtype)} n={n} k={k} flip={flip}", values)


# ---- networks ------------------------------------------------------------------------------------


def _networks(comparator: str, dtype: torch.dtype, matrix: int) -> Iterator[Recipe]:
    kinds = {2: None, 16: "bitonic" if comparator == "cauchy" else "odd_even_merge", 33: None}
    for turn, (n, kind) in enumerate(kinds.items()):
        x, step = smooth_scores(n, dtype, 5), (kind, comparator)
        k = n if n < 33 or not matrix else 5
        tau = one_or_all(turn, (0.3, 1.0, 10.0), len(x))
        count = (torch.arange(len(x)) * n // 4).clamp(1, n) if n == 33 else None
        if n == 33 and matrix and comparator == "cauchy":  # enough work for several threads
            x, count, tau = x.repeat(200, 1), count.repeat(200), tau.repeat(200)
        for backward in (False, True):
            shape = count, k, tau, turn % 2, matrix
            yield later("network", _network, step, x, *shape, backward=backward)


def _network(
    step: tuple[str | None, str],
    x: Tensor,
    count: Tensor | None,
    k: int,
    tau: Tensor,
    descending: int,
    matrix: int,
    *,
    backward: bool,
) -> Call:
    kind, comparator = step
    rows, n = x.shape
    through = network_reference._rows if matrix else network_reference._values
    column = tau.expand(rows)

    def plain(at: Tensor) -> Tensor:
        settings = column, bool(descending), kind, comparator, k
        return through(at, count, *settings)

    out = plain(x.double())
    upstream = upstream_for(out, x.dtype) if backward else None
    if upstream is not None:
        out = gradient_of(plain, x, upstream)
    wires = network_for(n, k, kind)
    low, high, outputs = (torch.from_numpy(v) for v in _wires(wires))
    answer = "network gradient" if backward else "network"
    values: dict[str, Value] = {
        "scores": x,
        "temperature": tau,
        "count": None if count is None else count.to(torch.int32),
        "low": low,
        "high": high,
        "outputs": outputs,
        "weights": None,
        "upstream": upstream,
        "out": Expected(out, x.dtype, allowed(answer, x.dtype, largest(out))),
        "by_weights": None,
        "rows": rows,
        "n": n,
        "k": k,
        "size": wires.size,
        "temperature_stride": stride(tau, rows),
        "comparator": COMPILED.index(comparator),
        "matrix": matrix,
        "descending": descending,
        "wide": is_wide(x.dtype),
    }
    about = f"{comparator} {short(x.dtype)} {'matrix' if matrix else 'values'} n={n} k={k}"
    return Call("network", f"{about} {'backward' if backward else 'forward'}", values)


# ---- row softmax ---------------------------------------------------------------------------------


def _row_softmaxes(family: RowSoftmaxMethod, dtype: torch.dtype) -> Iterator[Recipe]:
    for turn, (n, k) in enumerate(((1, 1), (3, 3), (16, 16), (65, 3), (300, 4))):
        x, tau = smooth_scores(n, dtype), one_or_all(turn, MILD, 3)
        for descending, backward in ((0, False), (1, False), (turn % 2, True)):
            options = family, x, k, tau, descending
            yield later("row_softmax", _row_softmax, "whole", *options, backward=backward)
    for backward in (False, True):
        x, tau = smooth_scores(MANY[1], dtype, MANY[0]), torch.tensor([1.0], dtype=torch.float64)
        options = family, x, 2, tau, 1
        yield later("row_softmax", _row_softmax, "threads", *options, backward=backward)
    for descending, backward in product((0, 1), (False, True)):
        x, absent = smooth_scores(100, dtype), -math.inf if descending else math.inf
        x[0, ::2] = x[2, 1:5] = absent
        options = family, x, 3, cycled(MILD, 3), descending
        yield later("row_softmax", _row_softmax, "absent", *options, backward=backward)


def _row_softmax(
    about: str,
    family: RowSoftmaxMethod,
    x: Tensor,
    k: int,
    tau: Tensor,
    descending: int,
    *,
    backward: bool,
) -> Call:
    rows, n = x.shape
    live = x.isfinite()

    def plain(at: Tensor) -> Tensor:
        at = torch.where(live, at, 0.0)
        mask = None if live.all() else live
        settings = tau.expand(rows), bool(descending), family.family, k
        return rows_reference._finite_rows(at, mask, *settings)

    p = plain(x.double())
    values: dict[str, Value] = {
        "scores": x,
        "temperature": tau,
        "p": Expected(p, x.dtype, allowed("row softmax", x.dtype, torch.ones(rows))),
        "order": Unchecked((rows, n), torch.int32),
        "count": Unchecked((rows,), torch.int32),
        "rows": rows,
        "k": k,
        "n": n,
        "temperature_stride": stride(tau, rows),
        "family": FAMILIES.index(family.family),
        "descending": descending,
        "wide": is_wide(x.dtype),
    }
    if backward:
        upstream = upstream_for(p, x.dtype)
        gradient = gradient_of(plain, x, upstream)
        settings = tau, bool(descending), family.family, k
        saved = dict(
            zip(("p", "order", "count"), row_softmax.rows.forward(x, *settings), strict=True)
        )
        tolerance = allowed("row softmax gradient", x.dtype, largest(gradient))
        values |= {
            **saved,
            "upstream": upstream,
            "gradient": Expected(gradient, x.dtype, tolerance),
        }
    kind = "backward" if backward else "forward"
    name = f"{family.family} {short(x.dtype)} {about} {kind} n={n} k={k} descending={descending}"
    return Call("row_softmax", name, values)
