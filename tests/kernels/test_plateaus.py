"""Uniform F-sums have the same value in the whole of a gap of τ: their point is its middle."""

import random

import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests.oracles.plateaus import point


def _rows(seed):
    """Scores with ties, a τ as wide as some gap or not, and levels of which half are whole."""
    choose = random.Random(seed)
    n = choose.randint(2, 12)
    scores = [round(choose.gauss(0, 1), choose.choice((1, 17))) for _ in range(n)]
    gaps = [b - a for a, b in zip(sorted(scores), sorted(scores)[1:], strict=False)]
    tau = choose.choice((choose.uniform(0.05, 1), max([*gaps, 0.1]), 0.3))
    return scores, tau, n, choose


@pytest.mark.parametrize("kind", _native.KINDS)
@pytest.mark.parametrize("many", [False, True], ids=["few", "many"])
def test_a_point_is_in_the_middle_of_its_plateau(kind, many):
    """By a threshold for up to four levels; for more by a walk along the sorted row."""
    for seed in range(60):
        scores, tau, n, choose = _rows(seed)
        whole = [float(choose.randint(1, n - 1)) for _ in range(3 if many else 1)]
        levels = whole + [choose.uniform(0.01, n - 0.01) for _ in whole]
        expected = [point(scores, level, tau) for level in levels]
        with _native.use(kind):
            found = so.fsum_inverse(
                torch.tensor(scores, dtype=torch.float64),
                torch.tensor(levels, dtype=torch.float64),
                method="uniform",
                temperature=tau,
            )
        torch.testing.assert_close(
            found,
            found.new_tensor(expected),
            rtol=1e-12,
            atol=1e-12,
            msg=f"{seed}: {found.tolist()} {expected}",
        )


def test_quantiles_of_levels_that_rounding_made():
    """0.29 · 100 is less than 29, but the 29th gap is meant."""
    scores = torch.arange(100, dtype=torch.float64)
    found = so.soft_quantile(scores, [0.29, 0.57, 0.58], method="uniform", temperature=0.5)
    assert found.tolist() == [28.5, 56.5, 57.5]


@pytest.mark.parametrize("kind", _native.KINDS)
def test_both_neighbours_share_the_gradient(kind):
    scores = torch.tensor([0.0, 5.0, 1.0], dtype=torch.float64, requires_grad=True)
    tau = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    with _native.use(kind):
        t = so.soft_quantile(scores, 2 / 3, method="uniform", temperature=tau)
        gradients = torch.autograd.grad(t, (scores, tau))
    assert t.item() == 3
    assert gradients[0].tolist() == [0.0, 0.5, 0.5]
    assert gradients[1].item() == 0
