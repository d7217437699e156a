"""NeuralSort (Grover et al. 2019), equation 5: an n×n matrix of rows that sum to 1."""

from __future__ import annotations

import torch

from benchmarks.cases import OrderingCase
from benchmarks.providers._provider import Operator, Provider


def permutation(scores: torch.Tensor, temperature: float) -> torch.Tensor:
    """Row i is softmax(((n + 1 - 2i) x - A 1)/τ), A the differences |x_i - x_j|; descending."""
    n = scores.shape[-1]
    spread = (scores.unsqueeze(-1) - scores.unsqueeze(-2)).abs().sum(-1)
    place = torch.arange(1, n + 1, dtype=scores.dtype)
    logits = (n + 1 - 2 * place).unsqueeze(-1) * scores.unsqueeze(-2) - spread.unsqueeze(-2)
    return torch.softmax(logits / temperature, -1)


def _bind(case: OrderingCase) -> Operator:
    def call(scores: torch.Tensor) -> torch.Tensor:
        return (permutation(scores, case.temperature) @ scores.unsqueeze(-1)).squeeze(-1)

    return call


provider = Provider("neuralsort", "NeuralSort formula", _bind)
