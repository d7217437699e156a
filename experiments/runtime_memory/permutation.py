"""Soft permutations of one row: LapSum, figure 14."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

import softorder as so
from benchmarks.cases import Case, Shape
from benchmarks.providers import Operator, Provider, neural_sort, paper_sinkhorn, soft_sort
from experiments.runtime_memory.part import Part

_TEMPERATURE = 0.1


def _case(n: int) -> Case:
    # n anchors of a transport plan are n - 1 places and the rest
    return Case(Shape(1, n), n - 1, _TEMPERATURE)


def _ours(method: str) -> Provider:
    def bind(case: Case) -> Operator:
        return lambda scores: so.soft_permutation(
            scores, method=method, temperature=case.temperature, descending=True
        )

    return Provider(method, method, bind)


def _formula(name: str, permutation: Callable[[Tensor, float], Tensor]) -> Provider:
    return Provider(name, name, lambda case: lambda scores: permutation(scores, case.temperature))


def _error(p: Tensor, case: Case) -> float:
    """Of the worst row or column; a plan without its last place has no whole columns."""
    sums = [p.sum(-1)] if p.shape[-2] == case.k else [p.sum(-1), p.sum(-2)]
    return max((s.double() - 1).abs().max().item() for s in sums)


PART = Part(
    name="permutation",
    about="the n×n matrix of one row, float64",
    case=_case,
    dtype=torch.float64,
    ours={r.name: _ours(r.name) for r in so.methods() if r.operator == "soft_permutation"},
    published={
        p.name: p
        for p in (
            _formula("NeuralSort formula", neural_sort.permutation),
            _formula("SoftSort formula", soft_sort.permutation),
            paper_sinkhorn.provider,
        )
    },
    error=_error,
    error_label="|Σ p - 1| of the worst row or column",
)
