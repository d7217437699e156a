"""torch.topk: the hard top-k. Its values carry a gradient, its choice does not."""

import torch

from benchmarks.cases import Case
from benchmarks.providers._provider import Operator, Provider


def _bind(case: Case) -> Operator:
    return lambda scores: torch.topk(scores, case.k, -1).values


provider = Provider("topk", "torch.topk", _bind)
