"""What soft permutations are often made for, without the n×n matrix: loss, ranks, sorted values."""

from __future__ import annotations

from collections.abc import Callable

import torch

import softorder as so
from benchmarks.cases import Case, Shape
from benchmarks.providers import Operator, Provider
from experiments.runtime_memory.part import Part

_TEMPERATURE = 0.1
_OPERATORS = {"rank": so.soft_rank, "sort": so.soft_sort}
#: those that hold O(n) numbers, or tiles of n×n ones
_METHODS = {
    "cross-entropy": ("laplace", "uniform", "logistic"),
    "rank": ("laplace", "uniform", "logistic", "permutahedron", "permutahedron_kl"),
    "sort": ("laplace", "uniform", "logistic", "permutahedron", "permutahedron_kl", "network"),
}


def _case(n: int) -> Case:
    return Case(Shape(1, n), n, _TEMPERATURE)


def _ours(what: str, method: str) -> Provider:
    bind = _loss(method) if what == "cross-entropy" else _values(what, method)
    return Provider(f"{what}-{method}", f"{what}, {method}", bind)


def _loss(method: str) -> Callable[[Case], Operator]:
    def bind(case: Case) -> Operator:
        places = case.scores().argsort(-1).argsort(-1)
        return lambda scores: so.losses.permutation_cross_entropy(
            scores, places, method=method, temperature=case.temperature
        )

    return bind


def _values(what: str, method: str) -> Callable[[Case], Operator]:
    def bind(case: Case) -> Operator:
        operator = _OPERATORS[what]
        return lambda scores: operator(scores, method=method, temperature=case.temperature)

    return bind


PART = Part(
    name="order",
    about="one row, without a matrix, float64",
    case=_case,
    dtype=torch.float64,
    ours={
        provider.name: provider
        for what, methods in _METHODS.items()
        for provider in (_ours(what, method) for method in methods)
    },
    published={},
)
