"""torch.sort: what every method that sorts has to pay first."""

import torch

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def _bind(_: Case) -> Operator:
    return lambda scores: torch.sort(scores, -1, descending=True).values


provider = Provider("sort", "torch.sort", _bind)
