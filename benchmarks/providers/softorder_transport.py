"""so.soft_permutation by entropic transport."""

from __future__ import annotations

import softorder as so
from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def _bind(case: Case) -> Operator:
    return lambda scores: so.soft_permutation(
        scores, k=case.k, method="sinkhorn", temperature=case.temperature, descending=True
    )


provider = Provider("transport", "softorder sorted SOFT top-k", _bind)
