"""torch.softmax of as many rows of n as the case wants: the least that k rows of P can cost."""

from __future__ import annotations

import torch

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def _bind(case: Case) -> Operator:
    generator = torch.Generator().manual_seed(1)
    logits = torch.randn(case.shape.rows, case.k, case.shape.n, generator=generator)
    return lambda _: torch.softmax(logits, -1)


provider = Provider("softmax-rows", "torch.softmax of k×n", _bind)
