"""so.soft_topk as a user on a CPU gets it: the compiled kernels."""

from __future__ import annotations

import softorder as so
from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def provider(density: str) -> Provider:
    def bind(case: Case) -> Operator:
        return lambda scores: so.soft_topk(
            scores, case.k, method=density, temperature=case.temperature
        )

    return Provider("native", f"softorder {density}", bind, density)
