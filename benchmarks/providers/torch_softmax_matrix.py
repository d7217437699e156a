"""Writing an n×n tensor per row and taking its softmax: what any permutation matrix costs."""

import torch

from benchmarks.cases import OrderingCase
from benchmarks.providers._provider import Operator, Provider


def _bind(_: OrderingCase) -> Operator:
    return lambda scores: torch.softmax(scores.unsqueeze(-1) - scores.unsqueeze(-2), -1)


provider = Provider("softmax-matrix", "write and softmax n×n", _bind)
