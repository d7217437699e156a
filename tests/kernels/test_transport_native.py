"""Entropic transport by compiled kernels against plain torch and Sinkhorn's iterations."""

import math

import numpy as np
import pytest
import torch

from softorder.kernels import _native, transport
from softorder.kernels.transport import cpu
from softorder.kernels.transport.reference import NEWTON
from tests import bank
from tests.oracles.transport import sinkhorn_extended

_EPSILONS = (1e-6, 1e-3, 0.1, 1.0, 30.0, 1e4)


def _levels(rows, n, thresholds):
    levels = torch.arange(1, thresholds + 1, dtype=torch.float64).expand(rows, thresholds)
    return levels, torch.full((rows, 1), float(n), dtype=torch.float64)


def _scores(n, rows=3):
    return torch.randn(rows, n, dtype=torch.float64, generator=torch.Generator().manual_seed(n))


def _solve(kind, scores, levels, total, epsilon, tolerance=1e-12):
    with _native.use(kind):
        temperature = torch.tensor(epsilon, dtype=torch.float64)
        gains = 2 * scores.unsqueeze(-2)
        return transport.solve(gains, levels, total, temperature, "newton", tolerance, 100)


def _agree(scores, levels, total, epsilon):
    before = _native.calls["transport_solve"]
    found = _solve("native", scores, levels, total, epsilon)
    assert _native.calls["transport_solve"] == before + 1
    expected = _solve("torch", scores, levels, total, epsilon)
    torch.testing.assert_close(found.centre, expected.centre, rtol=0, atol=0)
    # the next step is taken from an error of 1e-12: where J is small thresholds are as loose
    torch.testing.assert_close(found.rest, expected.rest, rtol=1e-9, atol=1e-9)
    assert found.error.max() <= 1e-12
    assert (found.iterations <= expected.iterations + 4).all()  # a factor of J serves several steps


@pytest.mark.parametrize("n", [2, 3, 8, 9, 17, 64, 100])
def test_thresholds_are_those_of_plain_torch(level, n):
    with _native.use_level(level):
        for epsilon in _EPSILONS:
            for thresholds in {1, max(n // 3, 1), n - 1}:
                _agree(_scores(n), *_levels(3, n, thresholds), epsilon)


def test_few_thresholds_of_a_long_row(level):
    with _native.use_level(level):
        for epsilon in _EPSILONS:
            _agree(_scores(2000), *_levels(3, 2000, 5), epsilon)


def test_ties(level):
    scores = (2 * _scores(40)).round()
    scores[1] = 0.25
    with _native.use_level(level):
        for epsilon in (1e-2, 1.0, 1e2):
            _agree(scores, *_levels(3, 40, 39), epsilon)


def test_closed_thresholds_and_scores_that_take_no_part(level):
    """As `transport_rows.levels` makes them of infinities, and of scores that were left out."""
    scores = _scores(20, 5)
    scores[0, ::3], scores[1, 1:], scores[2] = math.inf, math.inf, math.inf
    finite = scores.isfinite().sum(-1, keepdim=True).double()
    levels, _ = _levels(5, 20, 19)
    levels = (levels - torch.tensor([[4.0], [0.0], [0.0], [2.0], [0.0]])).clamp(min=0)
    levels, total = levels.minimum(finite), finite
    total[4], levels = 50.0, levels.contiguous()
    with _native.use_level(level):
        for epsilon in (1e-2, 1.0, 1e2):
            _agree(scores, levels, total, epsilon)


def test_nan_stays_in_its_row(level):
    scores = _scores(12)
    scores[1, 5] = math.nan
    with _native.use_level(level):
        found = _solve("native", scores, *_levels(3, 12, 11), 1.0)
        alone = _solve("native", scores[2:], *_levels(1, 12, 11), 1.0)
    assert found.error.isnan().tolist() == [False, True, False]
    assert torch.equal(found.rest[2:], alone.rest)


@pytest.mark.parametrize("family", bank.FAMILIES)
def test_converges_on_every_kind_of_row(level, family):
    for n, thresholds in ((3, 1), (30, 29), (200, 20), (120, 119)):
        scores = torch.from_numpy(bank.row(family, n)).unsqueeze(0)
        for epsilon in (1e-6, 1e-3, 1.0, 1e3, 1e6):
            with _native.use_level(level):
                found = _solve("native", scores, *_levels(1, n, thresholds), epsilon)
            assert found.error.max() <= 1e-12
            assert found.iterations.max() <= 25


@pytest.mark.parametrize("epsilon", [0.3, 3.0, 1e2])
def test_the_paper_does_not_move_from_there(epsilon):
    """Nor do thresholds that it found by itself differ."""
    n, k = 12, 11
    scores = _scores(n, 1)
    found = _solve("native", scores, *_levels(1, n, k), epsilon)
    at = (found.centre + epsilon * found.rest)[0].numpy().astype(np.longdouble) / 2
    start = scores[0].sort().values
    start = (start[1:] + start[:-1]).numpy() / 2
    iterations = 20_000 if epsilon < 1 else 2_000
    theirs = sinkhorn_extended(scores[0].numpy(), start, epsilon, iterations)
    ours = sinkhorn_extended(scores[0].numpy(), at, epsilon, 0)
    assert np.abs(ours - theirs).max() < 1e-9


def test_threads_and_strides_change_nothing():
    scores = _scores(30, 200)
    levels, total = _levels(200, 30, 29)
    temperature = torch.linspace(0.1, 3, 200, dtype=torch.float64)
    options = NEWTON, 1e-12, 100, 2**25
    gains = scores.t().contiguous().t().unsqueeze(-2)
    assert not gains.is_contiguous()
    threads = torch.get_num_threads()
    results = []
    for count in (1, 3):
        torch.set_num_threads(count)
        results.append(cpu.solve(gains, levels, total, temperature, *options))
    torch.set_num_threads(threads)
    for one, three in zip(*results, strict=True):
        assert torch.equal(one, three)
    last = cpu.solve(gains[-1:], levels[-1:], total[-1:], temperature[-1:], *options)
    assert torch.equal(last.rest, results[0].rest[-1:])
