"""The oracles agree with each other: 80 digits, float64 bisection, enumeration, differences."""

import numpy as np
import pytest

from tests import bank
from tests.oracles import bisection, exact, hard, projection
from tests.oracles.densities import DENSITIES

# Long enough for every family to show its character, short enough for 80 digits.
_SAMPLE = [
    (1, "normal"),
    *((3, family) for family in ("normal", "ties", "outlier")),
    *(
        pytest.param(3, family, marks=pytest.mark.slow)
        for family in bank.FAMILIES
        if family not in ("normal", "ties", "outlier")
    ),
]
_TEMPERATURES = (1e-6, 1.0)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize(("n", "family"), _SAMPLE)
def test_bisection_agrees_with_80_digits(density, n, family):
    labels, scores, k, temperature = bank.problems([family], n, temperatures=_TEMPERATURES)
    found = bisection.soft_topk(scores, k, temperature, density)
    for i, label in enumerate(labels):
        truth = exact.soft_topk(scores[i], k[i], temperature[i], density)
        np.testing.assert_allclose(found.p[i], _floats(truth.p), rtol=0, atol=1e-15, err_msg=label)
        if density != "uniform":  # its p may be an exact zero, where the logarithm jumps
            np.testing.assert_allclose(
                found.log_p[i], _floats(truth.log_p), rtol=1e-13, atol=1e-14, err_msg=label
            )


@pytest.mark.parametrize("density", DENSITIES)
def test_bisection_has_the_mass_of_long_rows(density):
    labels, scores, k, temperature = bank.problems(bank.FAMILIES, 1000)
    found = bisection.soft_topk(scores, k, temperature, density)
    error = abs(found.p.sum(axis=1, dtype=np.longdouble) - k) / np.maximum(k, 1)
    assert error.max() < 1e-13, labels[error.argmax()]


@pytest.mark.parametrize("k", [0.3, 1.0, 2.5, 4.0])
@pytest.mark.parametrize("temperature", [0.05, 1.0, 30.0])
def test_uniform_is_the_projection(k, temperature):
    scores = np.array([0.3, -1.2, 2.0, 2.0, 0.9])
    found = bisection.soft_topk(scores[None], k, temperature, "uniform").p[0]
    np.testing.assert_allclose(found, projection.soft_topk(scores, k, temperature), atol=1e-12)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_jacobian_agrees_with_differences(density, temperature):
    scores, k = [0.31, -1.2, 2.0, 0.77], 1.6
    rows = np.tile(scores, (4, 1))
    implicit = bisection.vjp(rows, k, temperature, density, upstream=np.eye(4))
    differences = exact.jacobian(scores, k, temperature, density)
    for formula, difference in zip(implicit, differences, strict=True):
        np.testing.assert_allclose(formula, difference, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("density", DENSITIES)
@pytest.mark.parametrize("k", [0.4, 1.0, 2.0, 2.5, 4.0])
def test_hard_is_the_cold_limit(density, k):
    scores = [1.0, 3.0, 1.0, 1.0, -2.0]
    cold = bisection.soft_topk([scores], k, 1e-9, density).p[0]
    np.testing.assert_allclose(cold, hard.topk(scores, k), atol=1e-7)


def _floats(values):
    return [float(v) for v in values]
