"""Blocks of isotonic regressions against scikit-learn, and in linear time."""

import math
import time
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.isotonic import isotonic_regression

from softorder.kernels.isotonic import blocks

_ROWS = {
    "decreasing": lambda n: np.linspace(1, -1, n),
    "increasing": lambda n: np.linspace(-1, 1, n),
    "constant": np.zeros,
    "sawtooth": lambda n: np.arange(n) % 17 - np.arange(n) / n,
    "late_drop": lambda n: np.concatenate([-(np.arange(n - 1.0) ** 2), [float(n**3)]]),
    "random": lambda n: np.random.default_rng(n).standard_normal(n),
}


@pytest.mark.parametrize("shape", _ROWS)
def test_means_over_blocks_are_the_regression(shape):
    y = _ROWS[shape](200)
    first = blocks(torch.from_numpy(y), torch.zeros(200).double(), "l2").numpy()
    means = np.array([y[first == start].mean() for start in first])
    np.testing.assert_allclose(means, isotonic_regression(y, increasing=False), atol=1e-9)


@pytest.mark.parametrize("shape", _ROWS)
def test_entropic_blocks_solve_their_problem(shape):
    """Σ e^s = Σ e^w e^v over each block, v descends, and no block can be split: partial sums."""
    s = torch.from_numpy(_ROWS[shape](60)).clamp(-50, 50)
    w = torch.randn(60, generator=torch.Generator().manual_seed(1)).double()
    first = blocks(s, w, "kl")
    starts = first.unique().tolist()
    values = []
    for start, end in zip(starts, [*starts[1:], 60], strict=True):
        part, weight = s[start:end], w[start:end]
        values.append((part.logsumexp(0) - weight.logsumexp(0)).item())
        ahead = part.logcumsumexp(0) - weight.logcumsumexp(0)
        assert (ahead <= values[-1] + 1e-9).all()
    assert all(a > b for a, b in pairwise(values))


@pytest.mark.parametrize("regularization", ["l2", "kl"])
def test_absent_places_stay_alone(regularization):
    s = torch.tensor([0.0, 1.0, -math.inf, -math.inf])
    assert blocks(s, torch.zeros(4), regularization)[:3].tolist() == [0, 0, 2]


@pytest.mark.parametrize("regularization", ["l2", "kl"])
def test_any_shape(regularization):
    s = torch.randn(2, 3, 5)
    first = blocks(s, torch.zeros_like(s), regularization)
    assert first.shape == s.shape
    assert torch.equal(first[1, 2], blocks(s[1, 2], torch.zeros(5), regularization))
    assert blocks(s[:0], s[:0], regularization).shape == (0, 3, 5)
    batched = torch.vmap(lambda s: blocks(s, torch.zeros(3, 5), regularization))(s)
    assert torch.equal(batched, first)


@pytest.mark.parametrize("shape", _ROWS)
def test_is_linear(shape):
    """Quadratic would be 100 times as long for 10 times as many."""
    seconds = []
    for n in (5_000, 50_000):
        y = torch.from_numpy(_ROWS[shape](n)).double()
        start = time.process_time()
        blocks(y, torch.zeros_like(y), "l2")
        seconds.append(time.process_time() - start)
    assert seconds[1] < 40 * max(seconds[0], 1e-3)
