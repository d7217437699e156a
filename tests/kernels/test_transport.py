"""The solvers of entropic transport against each other and against the paper's iterations."""

import itertools

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import transport
from tests import bank
from tests.oracles.transport import sinkhorn_extended

_EPSILONS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
_GRID = [
    (n, k, e) for n, k, e in itertools.product((10, 100, 1000), (1, 5, 20), _EPSILONS) if k < n
]


def _scores(n, rows, kind="normal"):
    generator = torch.Generator().manual_seed(n)
    random = torch.randn if kind == "normal" else torch.rand
    return random(rows, n, dtype=torch.float64, generator=generator)


def _solve(scores, k, epsilon, solver="newton", tolerance=1e-12, max_iterations=100):
    rows, n = scores.shape
    levels = torch.arange(1, k + 1, dtype=torch.float64).expand(rows, k)
    total = torch.full((rows, 1), float(n), dtype=torch.float64)
    temperature = torch.full((rows,), epsilon, dtype=torch.float64)
    gains = 2 * scores.unsqueeze(1)
    return transport.solve(gains, levels, total, temperature, solver, tolerance, max_iterations)


def _plan(scores, k, epsilon, **options):
    return so.Sinkhorn(**options).plan(scores, k=k, temperature=epsilon)


@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize(("n", "k", "epsilon"), _GRID)
def test_newton_converges_in_a_handful_of_iterations(n, k, epsilon, kind):
    found = _plan(_scores(n, 32, kind), k, epsilon)
    assert found.iterations.max() <= 10
    assert found.error.max() <= 1e-12
    assert (found.permutation.sum(-1) - 1).abs().max() < 3e-12
    rest = 1 - found.permutation.sum(-2)
    assert (rest.sum(-1) - (n - k)).abs().max() < 1e-10


@pytest.mark.parametrize("family", bank.FAMILIES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_newton_converges_on_every_kind_of_row(family, epsilon):
    for n, k in ((3, 1), (30, 29), (200, 20)):
        scores = torch.from_numpy(bank.row(family, n)).unsqueeze(0)
        solution = _solve(scores, k, epsilon)
        assert solution.iterations.max() <= 25
        assert solution.error.max() <= 1e-12


@pytest.mark.parametrize("kind", ["normal", "uniform"])
@pytest.mark.parametrize(("n", "k", "epsilon"), _GRID)
def test_newton_is_the_fixed_point_of_sinkhorn(n, k, epsilon, kind):
    """The fixed point is unique, and the paper's iterations do not leave it."""
    scores = _scores(n, 1, kind)
    centre, rest, *_ = (v[0].numpy().astype(np.longdouble) for v in _solve(scores, k, epsilon))
    theirs = sinkhorn_extended(scores[0].numpy(), (centre + epsilon * rest) / 2, epsilon, 20)
    ours = _plan(scores, k, epsilon).permutation[0]
    assert np.abs(ours.numpy() - theirs.T[:k]).max() < 1e-9


def _by_patience():
    """With many anchors Sinkhorn takes thousands of iterations."""
    for n, k, epsilon in _GRID:
        long = k == 20 and (n, epsilon) != (100, 1e-1)
        yield pytest.param(n, k, epsilon, marks=[pytest.mark.slow] * long)


@pytest.mark.parametrize(("n", "k", "epsilon"), list(_by_patience()))
def test_newton_agrees_with_converged_sinkhorn(n, k, epsilon):
    """On scores that lie about ε apart: across wider gaps Sinkhorn takes exponentially long."""
    scores = _scores(n, 4, "uniform") * min(1.0, 0.5 * n * epsilon)
    options = {"solver": "sinkhorn", "tolerance": 1e-12, "max_iterations": 20_000}
    sinkhorn = _plan(scores, k, epsilon, **options)
    assert sinkhorn.error.max() <= 1e-12
    newton = _plan(scores, k, epsilon)
    assert (newton.permutation - sinkhorn.permutation).abs().max() < 1e-9


def test_rows_converge_by_themselves():
    scores, epsilon = _scores(100, 8), 1e-2
    together = _solve(scores, 5, epsilon)
    for row in range(8):
        alone = _solve(scores[row : row + 1], 5, epsilon)
        assert torch.equal(alone.iterations[0], together.iterations[row])
        torch.testing.assert_close(alone.rest[0], together.rest[row], rtol=0, atol=1e-9)
    assert len(together.iterations.unique()) > 1


def test_says_how_far_it_came():
    solution = _solve(_scores(100, 8), 5, 1e-2, solver="sinkhorn", max_iterations=3)
    assert (solution.iterations == 3).any()
    assert solution.error.max() > 1e-6
