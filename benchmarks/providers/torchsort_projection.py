"""torchsort's soft ranks and sorts, which softorder calls permutahedron and permutahedron_kl."""

from __future__ import annotations

import torchsort

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def provider(operator: str, regularization: str) -> Provider:
    def bind(case: Case) -> Operator:
        function = getattr(torchsort, operator)
        return lambda scores: function(scores, regularization, case.temperature)

    return Provider("torchsort", f"torchsort {regularization}", bind)
