"""Records calls of all kernels with their right answers, for `replay.cpp`.

The answers are those of plain torch in float64, with autograd for the gradients: never those of a
compiled kernel. What a backward kernel reads of its forward pass may come from one.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from softorder.kernels import _native
from tests.machines.calls import Call, Recipe, write
from tests.machines.cases import (
    entries,
    fsum,
    matrices,
    order,
    pairs,
    pareto,
    sort,
    subsets,
    topk,
    transport,
)

_THREADS = (1, 3, 1)
_LARGE = 1 << 15  #: scores; from here on kernels use several threads
_FEW = 4  #: calls of each kernel for a quick replay


def record(path: Path) -> int:
    """Writes the file of all calls, and says how many they are."""
    calls = made()
    write(path, calls)
    return len(calls)


def made(few: bool = False) -> list[Call]:
    """All calls, or a few of every kernel."""
    modules = topk, sort, fsum, order, matrices, entries, pairs, pareto, subsets, transport
    recipes = [recipe for cases in modules for recipe in cases.recipes()]
    if missing := _native.KERNELS.keys() - {recipe.kernel for recipe in recipes}:
        raise ValueError(f"no call of {', '.join(sorted(missing))}")
    if few:
        recipes = _some_of_each(recipes)
    return [_make(recipe, turn) for turn, recipe in enumerate(recipes)]


def _make(recipe: Recipe, turn: int) -> Call:
    """The call, on one thread or on several."""
    call = recipe.make()
    if call.kernel != recipe.kernel:
        raise ValueError(f"a recipe for {recipe.kernel} made a call of {call.kernel}")
    call.values["threads"] = 3 if _scores(call) >= _LARGE else _THREADS[turn % len(_THREADS)]
    return call


def _scores(call: Call) -> int:
    rows, n = call.values["rows"], call.values["n"]
    assert isinstance(rows, int)
    assert isinstance(n, int)
    return rows * n


def _some_of_each(recipes: list[Recipe]) -> list[Recipe]:
    """A few of every kernel, from all over its list."""
    of_kernel = defaultdict(list)
    for recipe in recipes:
        of_kernel[recipe.kernel].append(recipe)
    return [
        some[int((turn + 0.5) * len(some) / _FEW)]
        for some in of_kernel.values()
        for turn in range(_FEW)
    ]
