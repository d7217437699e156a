"""diffsort's bitonic network, as published: dense matrices, all n rows of the permutation."""

from __future__ import annotations

from functools import lru_cache

import torch
from diffsort import DiffSortNet

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


@lru_cache(maxsize=4)
def _network(n: int, steepness: float) -> torch.nn.Module:
    return DiffSortNet("bitonic", n, steepness=steepness, distribution="cauchy")


def _bind(case: Case) -> Operator:
    net = _network(case.shape.n, 1 / case.temperature)
    # Column j says where the j-th smallest came from.
    return lambda scores: net(scores)[1].mT.flip(-2)[:, : case.k]


provider = Provider("diffsort", "diffsort, bitonic", _bind)
