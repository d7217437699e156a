"""Issue 2's accuracy, for every density, precision and kernel, against float64 bisection."""

from functools import cache

import numpy as np
import pytest
import torch

import softorder as so
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


@pytest.mark.parametrize("n", [1, 2, 10, 100, 1000])
def test_every_short_problem(kernel, density, dtype, n):
    assert_accurate(*_short(n, dtype), density, _short_answer(n, dtype, density))


@pytest.mark.parametrize("family", bank.FAMILIES)
def test_rows_of_a_hundred_thousand(kernel, density, dtype, family):
    problem = _long(family, 10**5, dtype)
    assert_accurate(*problem, density, bisection.soft_topk(*problem[1:], density))


@pytest.mark.parametrize("turn", [0, 1])
def test_rows_of_a_million(kernel, density, dtype, turn):
    """Two families per density, so that together they meet all of them."""
    family = bank.FAMILIES[(BUILT_IN.index(density) + 5 * turn) % len(bank.FAMILIES)]
    problem = _long(family, 10**6, dtype)
    assert_accurate(*problem, density, bisection.soft_topk(*problem[1:], density))


@pytest.mark.slow
@pytest.mark.parametrize("family", bank.FAMILIES)
@pytest.mark.parametrize("n", [10**4, 10**5, 10**6])
def test_every_long_problem(kernel, density, dtype, n, family):
    for k in bank.ks(n):
        for temperature in bank.TEMPERATURES:
            problem = _one(family, n, dtype, k, temperature)
            assert_accurate(*problem, density, bisection.soft_topk(*problem[1:], density))


def assert_accurate(labels, scores, k, temperature, density, truth):
    p = so.soft_topk(
        torch.from_numpy(scores),
        torch.from_numpy(k),
        method=density,
        temperature=torch.from_numpy(temperature),
    ).numpy()
    bound = _BOUND[scores.dtype.type]
    _assert_small(abs(p - truth.p).max(axis=1), bound, "|p - p*|", labels)
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


@cache
def _short(n, dtype):
    return bank.problems(bank.FAMILIES, n, dtype)


@cache
def _short_answer(n, dtype, density):
    return bisection.soft_topk(*_short(n, dtype)[1:], density)


def _long(family, n, dtype):
    k, temperature = next((k(n), t) for name, k, t in _LONG if name == family)
    return _one(family, n, dtype, k, temperature)


def _one(family, n, dtype, k, temperature):
    label = (family, k, temperature)
    return [label], bank.row(family, n, dtype)[None], np.array([k]), np.array([temperature])
