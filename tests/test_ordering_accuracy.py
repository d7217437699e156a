"""The stated accuracy of rank, sort, permutation and quantile against direct sums and bisection."""

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native
from tests import bank
from tests.oracles import ordering
from tests.oracles.densities import BUILT_IN

_BOUND = {np.float64: 1e-11, np.float32: 1e-5}
_DTYPES = pytest.mark.parametrize("dtype", _BOUND, ids=["float64", "float32"])
_DENSITIES = pytest.mark.parametrize("density", BUILT_IN)


@_DENSITIES
@_DTYPES
@pytest.mark.parametrize("n", [1, 2, 10, 300])
def test_ranks(density, dtype, n):
    labels, scores, temperature = _problems(n, dtype)
    truth = np.stack(
        [ordering.rank(x, t, density) for x, t in zip(scores, temperature, strict=True)]
    )
    for kernel, found in _both(so.soft_rank, scores, temperature, density):
        _assert_small(abs(found - truth) / truth, _BOUND[dtype], labels, kernel)
        excess = abs(found.sum(1, dtype=np.longdouble) - n * (n + 1) / 2) / n**2
        _assert_small(excess[:, None], _BOUND[dtype], labels, kernel)


@pytest.mark.one_of(3)
@_DENSITIES
@_DTYPES
@pytest.mark.parametrize("n", [1, 2, 30])
def test_sorted_scores(density, dtype, n):
    labels, scores, temperature = _problems(n, dtype)
    truth = ordering.sort(scores, temperature, density)
    unit = np.maximum(abs(truth), temperature[:, None])
    for kernel, found in _both(so.soft_sort, scores, temperature, density):
        _assert_small(abs(found - truth) / unit, _BOUND[dtype], labels, kernel)
        assert (np.diff(found, axis=1) >= 0).all()


@pytest.mark.one_of(3)
@_DENSITIES
@_DTYPES
@pytest.mark.parametrize("n", [1, 2, 20])
def test_permutations(density, dtype, n):
    labels, scores, temperature = _problems(n, dtype)
    truth = ordering.permutation(scores, temperature, density)
    for kernel, found in _both(so.soft_permutation, scores, temperature, density):
        error = abs(found - truth).reshape(len(labels), -1)
        _assert_small(error, _BOUND[dtype], labels, kernel)


@_DENSITIES
@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
@pytest.mark.parametrize("temperature", [1e-3, 0.1, 10.0])
def test_permutations_of_a_thousand_are_doubly_stochastic(density, dtype, bound, temperature):
    scores = torch.from_numpy(bank.row("normal", 1000)).to(dtype)
    p = so.soft_permutation(scores, method=density, temperature=temperature)
    assert ((p >= 0) & (p <= 1)).all()
    for axis in (0, 1):
        assert abs(p.double().sum(axis) - 1).max() <= bound
    first = so.soft_permutation(scores, k=20, method=density, temperature=temperature)
    torch.testing.assert_close(first, p[:20], rtol=0, atol=bound)


@_DENSITIES
def test_a_permutation_sorts_in_the_limit(density):
    scores = torch.from_numpy(bank.row("normal", 50))
    p = so.soft_permutation(scores, method=density, temperature=1e-12)
    t = so.soft_sort(scores, method=density, temperature=1e-12)
    torch.testing.assert_close(p @ scores, t, rtol=0, atol=1e-7)
    torch.testing.assert_close(t, scores.sort().values, rtol=0, atol=1e-9)


@_DENSITIES
@pytest.mark.parametrize("n", [1, 10, 101])
def test_quantiles_invert_the_sum(density, n):
    q = np.array([1e-3, 0.1, 0.25, 0.5, 0.77, 1 - 1e-3])
    families = [family for family in bank.FAMILIES if family != "shifted"]  # t would be rounded
    labels, scores, temperature = _problems(n, np.float64, families, (0.1, 1.0, 1e3))
    for kernel in _native.KINDS:
        with _native.use(kernel):
            t = so.soft_quantile(
                torch.from_numpy(scores),
                torch.from_numpy(q),
                method=density,
                temperature=torch.from_numpy(temperature),
            )
        for row, label in enumerate(labels):
            at = t[:, row].numpy()
            level = ordering.fsum(scores[row], at, temperature[row], density)
            rounding = n * np.spacing(abs(at)) / temperature[row]
            error = np.maximum(abs(level - q * n) - rounding, 0) / n
            assert error.max() <= 1e-12, (kernel, label, error.max())


@pytest.mark.one_of(3)
@_DENSITIES
@_DTYPES
@pytest.mark.parametrize("n", [2, 20])
def test_gradients(density, dtype, n):
    labels, scores, temperature = _problems(n, dtype)
    upstream = np.random.default_rng(n).standard_normal(scores.shape).astype(dtype)
    smooth = _off_corners(scores, temperature, density)
    for operator, oracle in ((so.soft_rank, _rank_vjp), (so.soft_sort, ordering.sort_vjp)):
        precise = scores.astype(np.float64), temperature, density, upstream.astype(np.float64)
        by_score, by_temperature = oracle(*precise)
        scale = 1 / temperature if operator is so.soft_rank else np.ones_like(temperature)
        unit = np.maximum(abs(by_score).max(1), scale * abs(upstream).max(1))
        heat_unit = np.maximum(abs(by_temperature), n * unit)
        for kernel, found in _both_gradients(operator, scores, temperature, density, upstream):
            error = abs(found[0] - by_score) / unit[:, None]
            _assert_small(error[smooth], _BOUND[dtype], labels, (kernel, operator.__name__))
            error = abs(found[1] - by_temperature) / heat_unit
            _assert_small(error[smooth, None], _BOUND[dtype], labels, (kernel, "temperature"))


def _problems(n, dtype, families=bank.FAMILIES, temperatures=bank.TEMPERATURES):
    labels = [(family, t) for family in families for t in temperatures]
    scores = np.stack([bank.row(family, n, dtype) for family, _ in labels])
    return labels, scores, np.array([t for _, t in labels])


def _rank_vjp(scores, temperature, density, upstream):
    rows = zip(scores, temperature, upstream, strict=True)
    found = [ordering.rank_vjp(x, t, density, v) for x, t, v in rows]
    return [np.array(part) for part in zip(*found, strict=True)]


def _both(operator, scores, temperature, density):
    x, t = torch.from_numpy(scores), torch.from_numpy(temperature)
    for kernel in _native.KINDS:
        with _native.use(kernel):
            yield kernel, operator(x, method=density, temperature=t).numpy()


def _both_gradients(operator, scores, temperature, density, upstream):
    for kernel in _native.KINDS:
        inputs = [torch.from_numpy(v).requires_grad_() for v in (scores, temperature)]
        with _native.use(kernel):
            result = operator(inputs[0], method=density, temperature=inputs[1])
            found = torch.autograd.grad(result, inputs, torch.from_numpy(upstream))
        yield kernel, [v.numpy() for v in found]


def _off_corners(scores, temperature, density):
    """Rows with no difference of scores on a corner of the uniform CDF, where f jumps."""
    if density != "uniform":
        return np.full(len(scores), True)
    x = scores.astype(np.float64)
    u = abs(x[:, :, None] - x[:, None, :]) / temperature[:, None, None]
    ranked = abs(u - 0.5).min(axis=(1, 2)) > 1e-4
    t = ordering.sort(scores, temperature, density)
    u = abs(t[:, :, None] - x[:, None, :]) / temperature[:, None, None]
    return ranked & (abs(u - 0.5).min(axis=(1, 2)) > 1e-4)


def _assert_small(error, bound, labels, name):
    error = error.max(axis=1)
    worst = np.argmax(np.where(np.isnan(error), np.inf, error))
    assert error[worst] <= bound, f"{name}: {error[worst]:.3g} at row {worst} of {len(labels)}"
