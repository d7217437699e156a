"""Scores, targets and weights that the tests of top_k_cross_entropy share."""

import torch

import softorder as so
from tests.oracles.densities import BUILT_IN

MIX, FIVE, EVEN = [0.5, 0, 0, 0, 0.5], [0.0, 0, 0, 0, 1.0], [0.2] * 5
_OPERATORS = ("log_soft_topk", "soft_permutation", "soft_topk")
METHODS = sorted({row.name for row in so.methods() if row.operator in _OPERATORS})
TRANSPORT = ["sinkhorn", "sinkhorn_sort", "sorted_soft", "soft"]
ROWS = sorted(set(METHODS) - set(BUILT_IN) - set(TRANSPORT))


def problem(rows=6, n=12, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, dtype=torch.float64, generator=generator).to(dtype)
    return scores, torch.randint(n, (rows,), generator=generator)
