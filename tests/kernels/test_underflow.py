"""Differences of scores that underflow in units of τ: ties, for steps and tails alike."""

import pytest
import torch

import softorder as so


@pytest.mark.parametrize("n", [3, 400], ids=["few", "many"])
@pytest.mark.parametrize("method", [*so.densities.BUILT_IN])
def test_ranks_are_all_in_the_middle(kernel, method, n):
    scores = torch.linspace(-1e-281, 1e-281, n, dtype=torch.float64)
    ranks = so.soft_rank(scores, method=method, temperature=1e30)
    torch.testing.assert_close(ranks, torch.full_like(ranks, (n + 1) / 2))
