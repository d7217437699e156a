"""POT's Sinkhorn iterations in the log domain, row by row: the first k rows of a permutation.

The plan from scores to the k + 1 anchors of sorted SOFT top-k, as softorder's "sinkhorn" has it; it
has no implicit gradient, so it is timed forward only.
"""

from __future__ import annotations

import ot
import torch
from torch import Tensor

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider

_ITERATIONS = 1000  # its default


def _bind(case: Case) -> Operator:
    n, k = case.shape.n, case.k
    anchors = torch.arange(k + 1, dtype=torch.float64)
    mu = torch.full((n,), 1 / n, dtype=torch.float64)
    nu = torch.full((k + 1,), 1 / n, dtype=torch.float64)
    nu[-1] = 1 - k / n
    if k == n:
        anchors, nu = anchors[:-1], nu[:-1]  # a whole permutation leaves nobody over

    def plan(row: Tensor) -> Tensor:
        cost = (row.double().unsqueeze(-1) + anchors) ** 2  # of -scores: the largest go first
        options = {"method": "sinkhorn_log", "numItermax": _ITERATIONS, "warn": False}
        return n * ot.sinkhorn(mu, nu, cost, case.temperature, **options)[:, :k].mT

    return lambda scores: torch.stack([plan(row) for row in scores])


provider = Provider("pot", "POT sinkhorn_log", _bind)
