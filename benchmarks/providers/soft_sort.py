"""SoftSort (Prillo and Eisenschlos 2020): softmax(-|sort(x)_i - x_j|/τ), an n×n matrix."""

from __future__ import annotations

import torch

from benchmarks.cases import OrderingCase
from benchmarks.providers._provider import Operator, Provider


def permutation(scores: torch.Tensor, temperature: float) -> torch.Tensor:
    ordered = torch.sort(scores, -1, descending=True).values
    distance = (ordered.unsqueeze(-1) - scores.unsqueeze(-2)).abs()
    return torch.softmax(-distance / temperature, -1)


def _bind(case: OrderingCase) -> Operator:
    def call(scores: torch.Tensor) -> torch.Tensor:
        return (permutation(scores, case.temperature) @ scores.unsqueeze(-1)).squeeze(-1)

    return call


provider = Provider("softsort", "SoftSort formula", _bind)
