"""Relaxed top-k and k-hot draws of 100 rows: k-hot sampling, figure 6.

The scores of the root-finding benchmark, appendix A: normal, with standard deviations from 0.1 to 5
over the rows. The published programs take one k for all rows; it is n/2, the mean of the paper's.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

import softorder as so
from benchmarks.cases import Case, Shape
from benchmarks.providers import Operator, Provider, khot_recursion, softorder_khot
from experiments.runtime_memory import two_anchors
from experiments.runtime_memory.part import Part

_ROWS = 100


class _Spread(Case):
    def scores(self) -> Tensor:
        return torch.linspace(0.1, 5, self.shape.rows).unsqueeze(-1) * super().scores()


def _case(temperature: float) -> Callable[[int], Case]:
    return lambda n: _Spread(Shape(_ROWS, n), n // 2, temperature)


def _soft_topk(case: Case) -> Operator:
    # σ(x + c) is SOFT top-k with ε = 2
    return lambda scores: so.soft_topk(
        scores, case.k, method="logistic", temperature=case.temperature / 2
    )


def _error(p: Tensor, case: Case) -> float:
    return (p.double().sum(-1) - case.k).abs().max().item()


RELAXED = Part(
    name="relaxed",
    about=f"sigmoid top-k (logistic) and SOFT top-k (Sinkhorn), {_ROWS} rows, k = n/2, float32",
    case=_case(2.0),
    dtype=torch.float32,
    ours={"logistic": Provider("sigmoid", "sigmoid top-k", _soft_topk)},
    published={two_anchors.provider.name: two_anchors.provider},
    error=_error,
    error_label="|Σ p - k| of the worst row",
)
SAMPLING = Part(
    name="sampling",
    about=f"k-hot draws with a gradient, {_ROWS} rows, k = n/2, float32",
    case=_case(1.0),
    dtype=torch.float32,
    ours={
        design.name: softorder_khot.straight_through(design.name)
        for design in so.sampling.designs()
        if design.fixed_size and design.inclusion
    },
    published={khot_recursion.provider.name: khot_recursion.provider},
)
