"""The stated accuracy, for every density, precision and kernel, against float64 bisection."""

from itertools import product

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests import bank
from tests.oracles import bisection
from tests.oracles.densities import BUILT_IN

_BOUND = {np.float64: 1e-12, np.float32: 2e-6}

# One demanding (k, temperature) per family for rows that are too long for all of them.
_LONG = [
    ("normal", lambda n: n / 100, 1.0),
    ("uniform", lambda n: n / 2, 1e-3),
    ("exponential", lambda n: 1.0, 1e-3),
    ("cauchy", lambda n: n / 100, 1.0),
    ("two_modes", lambda n: n / 2, 1.0),
    ("five_modes", lambda n: n / 100, 1e3),
    ("ties", lambda n: n / 2, 1e-6),
    ("all_equal", lambda n: n - 1e-3, 1.0),
    ("geometric", lambda n: n - 1.0, 1e-3),
    ("outlier", lambda n: n / 2, 1.0),
    ("shifted", lambda n: n / 100, 1e-6),
]

pytestmark = [
    pytest.mark.parametrize("density", BUILT_IN),
    pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"]),
]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("n", [1, 2, 10, 100, 1000])
def test_every_short_problem(density, dtype, n):
    _assert_accurate(*bank.problems(bank.FAMILIES, n, dtype), density)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("family", bank.FAMILIES)
def test_rows_of_twenty_thousand(density, dtype, family):
    _assert_accurate(*_long(family, 20_000, dtype), density)


@pytest.mark.slow
def test_rows_of_a_million(density, dtype):
    """Two families per density, one for each precision, so that together they meet ten of them."""
    turn = 5 * (dtype is np.float32)
    family = bank.FAMILIES[(BUILT_IN.index(density) + turn) % len(bank.FAMILIES)]
    _assert_accurate(*_long(family, 10**6, dtype), density)


@pytest.mark.slow
@pytest.mark.timeout(1200)  # minutes of the oracle, when other tests run beside it
@pytest.mark.parametrize("family", bank.FAMILIES)
@pytest.mark.parametrize("n", [10**4, 10**5, 10**6])
def test_every_long_problem(density, dtype, n, family):
    """Of a million scores one problem in six; over the families, every density meets each."""
    problems = list(product(bank.ks(n), bank.TEMPERATURES))
    first = bank.FAMILIES.index(family) % 6
    for k, temperature in problems if n < 10**6 else problems[first::6]:
        _assert_accurate(*_one(family, n, dtype, k, temperature), density)


def _assert_accurate(labels, scores, k, temperature, density):
    """Both kernels in one test: the oracle is what takes the time."""
    truth = bisection.soft_topk(scores, k, temperature, density).p
    x, k_rows, temperatures = (torch.from_numpy(v) for v in (scores, k, temperature))
    for kernel in _native.KINDS:
        with _native.use(kernel):
            p = so.soft_topk(x, k_rows, method=density, temperature=temperatures).numpy()
        _assert_rows(p, truth, scores, k, [(kernel, *label) for label in labels])


def _assert_rows(p, truth, scores, k, labels):
    bound = _BOUND[scores.dtype.type]
    _assert_small(abs(p - truth).max(axis=1), bound, "|p - p*|", labels)
    mass = p.sum(axis=1, dtype=np.longdouble)
    _assert_small(abs(mass - k) / np.maximum(k, 1), bound, "|sum p - k| / max(1, k)", labels)
    assert p.min() >= 0
    assert p.max() <= 1
    ordered = np.take_along_axis(p, scores.argsort(axis=1), axis=1)
    drop = np.maximum(-np.diff(ordered, axis=1), 0).max(axis=1, initial=0)
    _assert_small(drop, np.finfo(scores.dtype).eps, "loss of order", labels)


def _assert_small(error, bound, name, labels):
    worst = np.argmax(np.where(np.isnan(error), np.inf, error))
    assert error[worst] <= bound, f"{name} = {error[worst]:.3g} at {labels[worst]}"


def _long(family, n, dtype):
    k, temperature = next((k(n), t) for name, k, t in _LONG if name == family)
    return _one(family, n, dtype, k, temperature)


def _one(family, n, dtype, k, temperature):
    label = (family, k, temperature)
    return [label], bank.row(family, n, dtype)[None], np.array([k]), np.array([temperature])
