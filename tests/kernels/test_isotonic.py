"""Blocks of isotonic regressions against scikit-learn, and in linear time."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.isotonic import isotonic_regression

from softorder.kernels import _native
from softorder.kernels.isotonic import blocks, reference

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


def _counted(operation):
    def count(self, other):
        _Counted.done += 1
        result = operation(self, other)
        return result if isinstance(result, bool) else _Counted(result)

    return count


class _Counted(float):
    """A number that counts what is done with it."""

    done = 0
    __add__, __radd__ = _counted(float.__add__), _counted(float.__radd__)
    __sub__, __rsub__ = _counted(float.__sub__), _counted(float.__rsub__)
    __truediv__ = _counted(float.__truediv__)
    __le__ = _counted(float.__le__)


@pytest.mark.parametrize("solve", [reference._l2, reference._kl])
@pytest.mark.parametrize("shape", _ROWS)
def test_work_is_linear(shape, solve):
    """Every place is compared and merged at most once, whatever the row."""
    work = []
    for n in (500, 5_000):
        _Counted.done = 0
        solve([_Counted(v) for v in np.clip(_ROWS[shape](n), -1e3, 1e3)], [_Counted(0.0)] * n)
        work.append(_Counted.done)
        assert n <= _Counted.done <= 12 * n
    assert work[1] <= 11 * work[0]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=str)
@pytest.mark.parametrize("regularization", ["l2", "kl"])
@pytest.mark.parametrize("shape", _ROWS)
def test_compiled_blocks_are_the_same(shape, regularization, dtype):
    y = _ROWS[shape](300)
    s = torch.from_numpy(np.clip(np.stack([y, y[::-1], 0.01 * y]), -300, 300)).to(dtype)
    w = torch.randn(3, 300, generator=torch.Generator().manual_seed(2)).to(dtype)
    before = _native.calls["isotonic"]
    with _native.use("native"):
        compiled = blocks(s, w, regularization)
    assert _native.calls["isotonic"] == before + 1
    with _native.use("torch"):
        assert torch.equal(compiled, blocks(s, w, regularization))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", _ROWS)
def test_a_million_places(shape, threads):
    """Quadratic would take hours. Parts that threads have pooled by themselves are joined."""
    y, before = _ROWS[shape](10**6), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        first = blocks(torch.from_numpy(y), torch.zeros(len(y)).double(), "l2").numpy()
    finally:
        torch.set_num_threads(before)
    sums = np.bincount(first, weights=y - y.mean(), minlength=len(y))
    means = sums[first] / np.bincount(first)[first] + y.mean()
    expected = isotonic_regression(y, increasing=False)
    np.testing.assert_allclose(means, expected, rtol=1e-9, atol=1e-9 * np.abs(y).max())
