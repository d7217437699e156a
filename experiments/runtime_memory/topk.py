"""Soft top-k of one row: LapSum, figures 5, 7, 10 and 11."""

from __future__ import annotations

import torch
from torch import Tensor

import softorder as so
from benchmarks.cases import Case, Shape
from benchmarks.providers import closed_form, native
from experiments.runtime_memory import two_anchors
from experiments.runtime_memory.part import Part

_TEMPERATURE = 0.1


def _error(p: Tensor, case: Case) -> float:
    return abs(p.double().sum().item() - case.k)


def _part(k: str) -> Part:
    def case(n: int) -> Case:
        return Case(Shape(1, n), 5 if k == "5" else n // 2, _TEMPERATURE)

    return Part(
        name=f"top-k, k = {k}",
        about="one row, float64",
        case=case,
        dtype=torch.float64,
        ours={row.name: native(row.name) for row in so.methods() if row.operator == "soft_topk"},
        published={p.name: p for p in (closed_form, two_anchors.provider)},
        error=_error,
    )


FIVE, HALF = _part("5"), _part("n/2")
