"""so.soft_rank, so.soft_sort and so.soft_permutation: compiled, and in plain torch."""

from __future__ import annotations

import torch

import softorder as so
from benchmarks.cases import OrderingCase
from benchmarks.providers._provider import Operator, Provider
from softorder.kernels import _native
from softorder.kernels.sort import sort

_OPERATORS = {"rank": so.soft_rank, "sort": so.soft_sort, "permutation": so.soft_permutation}


def compiled(operator: str, density: str) -> Provider:
    def bind(case: OrderingCase) -> Operator:
        function = _OPERATORS[operator]
        return lambda scores: function(scores, method=density, temperature=case.temperature)

    return Provider(operator, f"softorder {operator}, {density}", bind, density)


def learning(operator: str, density: str) -> Provider:
    """With a temperature that has a gradient."""

    def bind(case: OrderingCase) -> Operator:
        temperature = torch.tensor(case.temperature, dtype=torch.float64, requires_grad=True)
        function = _OPERATORS[operator]
        return lambda scores: function(scores, method=density, temperature=temperature)

    name = f"softorder {operator}, {density}, learned τ"
    return Provider(f"{operator}-learning", name, bind, density)


def plain(operator: str, density: str) -> Provider:
    usual = compiled(operator, density)

    def bind(case: OrderingCase) -> Operator:
        operator = usual.bind(case)

        def call(scores: torch.Tensor) -> torch.Tensor:
            with _native.use("torch"):
                return operator(scores)

        return call

    return Provider(f"{operator}-torch", f"{usual.name}, plain torch", bind, density)


def _argsort(_: OrderingCase) -> Operator:
    return lambda scores: sort(scores).order


argsort = Provider("argsort", "softorder argsort", _argsort)
