"""Rank and sort against torch.sort, permutations against what writing them costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import torch
from torch import Tensor

import softorder as so
from benchmarks.cases import Shape, normal_scores
from benchmarks.goals.goal import Goal, Side

_LONG = Shape(1, 100_000)
_LAPLACE = {Shape(128, 1_000): 0.5, Shape(128, 10_450): 0.5, Shape(1, 1_000_000): 0.35}
_SMOOTH = ("logistic", "normal", "cauchy")
_OPERATORS = {"soft_rank": so.soft_rank, "soft_sort": so.soft_sort}
_ROWS, _FEW = 5, Shape(1, 10_450)


def goals() -> Iterator[Goal]:
    for name, function in _OPERATORS.items():
        for shape, limit in _LAPLACE.items():
            yield _against_sort(name, function, "laplace", shape, limit)
        yield _against_sort(name, function, "uniform", _LONG, 0.4)
        for density in _SMOOTH:
            yield _against_sort(name, function, density, _LONG, 1.0)
    yield from _few_rows()


def _against_sort(
    name: str, function: Callable[..., Tensor], density: str, shape: Shape, limit: float
) -> Goal:
    inputs = partial(normal_scores, shape)
    theirs = Side("torch.sort", _sort, inputs)
    operator = partial(function, method=density, temperature=0.1)
    ours = Side(f"softorder {name} {density}", operator, inputs)
    table = "Rank and sort, forward, × torch.sort"
    return Goal("orders", table, f"{name} {shape} {density}", str(shape), ours, theirs, limit)


def _sort(x: Tensor) -> Tensor:
    return torch.sort(x, -1).values


def _few_rows() -> Iterator[Goal]:
    """The first rows of P against one softmax of as many rows."""
    for method, tau in product(("softsort", "neuralsort"), (1.0, 0.1)):
        operator = partial(
            so.soft_permutation, k=_ROWS, method=method, temperature=tau, descending=True
        )
        ours = Side(f"softorder {method}", operator, partial(normal_scores, _FEW))
        theirs = Side(f"torch.softmax of {_ROWS}×n", _softmax, _logits)
        table = f"{_ROWS} rows of a permutation, {_FEW}, forward, × a softmax of {_ROWS}×n"
        yield Goal("permutation", table, f"{method}, worst τ", f"τ={tau}", ours, theirs, 1.5)


def _logits() -> Tensor:
    return normal_scores(Shape(_ROWS, _FEW.n))


def _softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)
