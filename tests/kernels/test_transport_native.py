"""Entropic transport by compiled kernels against plain torch and Sinkhorn's iterations."""

import math

import numpy as np
import pytest
import torch

import softorder as so
from softorder.kernels import _native, transport
from softorder.kernels.transport import cpu, masses, plans
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


@pytest.mark.one_of(3)
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


# ---- plans and masses ---------------------------------------------------------------------------


def _found(scores, thresholds, epsilon, levels=None, total=None):
    """What the operators of plans take: per-row temperatures, and thresholds as they were found."""
    rows, n = scores.shape
    if levels is None:
        levels, total = _levels(rows, n, thresholds)
    temperature = epsilon * torch.linspace(1, 1.5, rows, dtype=torch.float64)
    gains = 2 * scores.unsqueeze(-2)
    with _native.use("torch"):
        solution = transport.solve(gains, levels, total, temperature, "newton", 1e-12, 100)
    return gains, temperature, levels, total, solution.centre, solution.rest


def _upstream(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def _rows_are_close(found, expected, tolerance):
    """Of each row: within its largest number."""
    unit = expected.abs().reshape(len(expected), -1).amax(-1).clamp(min=1e-290)
    off = (found - expected).abs().reshape(len(expected), -1).amax(-1)
    assert (off <= tolerance * unit).all(), (off / unit).max()


_SIZES = ((2, 1), (9, 8), (17, 3), (64, 63), (300, 5))


@pytest.mark.parametrize(("n", "thresholds"), _SIZES)
def test_plans_and_their_gradients(level, n, thresholds):
    for epsilon in _EPSILONS:
        given = _found(_scores(n), thresholds, epsilon)
        with _native.use_level(level):
            p = cpu.plan(*given)
            expected = plans.plan(*given)
            torch.testing.assert_close(p, expected, rtol=1e-12, atol=1e-300)
            upstream = _upstream(3, thresholds + 1, n)
            found, right = cpu.plan_vjp(upstream, *given), plans.plan_vjp(upstream, *given)
        for one, other in zip(found, right, strict=True):
            _rows_are_close(one, other, 1e-10)


@pytest.mark.parametrize(("n", "thresholds"), _SIZES)
def test_masses_and_their_gradients(level, n, thresholds):
    ks = tuple(sorted({1, (thresholds + 1) // 2, thresholds}))
    for epsilon in _EPSILONS:
        given = _found(_scores(n), thresholds, epsilon)
        with _native.use_level(level):
            found, rest = cpu.log_below(*given, ks)
            expected, balanced = masses.log_below(*given, ks)
            torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
            assert torch.equal(rest, balanced)
            upstream = _upstream(3, len(ks), n)
            given = (*given[:-1], rest)
            found = cpu.log_below_vjp(upstream, *given, ks)
            right = masses.log_below_vjp(upstream, *given, ks)
        for one, other in zip(found, right, strict=True):
            _rows_are_close(one, other, 1e-10)


def test_only_cold_rows_are_left_to_plain_torch(level):
    """And they are so few that nobody else waits for them, or is rounded otherwise."""
    scores = _scores(12, 4)
    scores[2] = torch.arange(12.0) * 50
    *given, rest = _found(scores, 11, 0.8)
    with _native.use_level(level):
        found, balanced = cpu.log_below(*given, rest, (1, 6))
        others = [0, 1, 3]
        alone, _ = cpu.log_below(*(v[others] for v in (*given, rest)), (1, 6))
        expected, right = masses.log_below(*given, rest, (1, 6))
    assert torch.equal(found[others], alone)
    assert torch.equal(found[2], expected[2])
    assert torch.equal(balanced[others], rest[others])
    torch.testing.assert_close(balanced, right)


def test_masses_that_underflow(level):
    """Scores that are hopelessly far from the first places, in rows whose thresholds are warm."""
    scores = torch.cat([_scores(10) / 10, 400 + _scores(10) / 10, _scores(3) + 3000], -1)
    given, ks = _found(scores, 5, 0.5), (1, 3, 5)
    with _native.use_level(level):
        found, _ = cpu.log_below(*given, ks)
        assert found.min() < -5_000
        torch.testing.assert_close(found, masses.log_below(*given, ks)[0], rtol=1e-12, atol=1e-14)
        upstream = _upstream(3, 3, 23)
        found = cpu.log_below_vjp(upstream, *given, ks)
    for one, other in zip(found, masses.log_below_vjp(upstream, *given, ks), strict=True):
        _rows_are_close(one, other, 1e-10)


def test_plans_with_closed_thresholds(level):
    scores = _scores(20, 4)
    scores[0, ::3], scores[1, 1:], scores[2] = math.inf, math.inf, math.inf
    finite = scores.isfinite().sum(-1, keepdim=True).double()
    levels, _ = _levels(4, 20, 19)
    levels = (levels - torch.tensor([[4.0], [0.0], [0.0], [2.0]])).clamp(min=0).minimum(finite)
    given, upstream = _found(scores, 19, 0.7, levels, finite), _upstream(4, 20, 20)
    ks = 3, 9, 19
    with _native.use_level(level):
        found = cpu.plan(*given), *cpu.plan_vjp(upstream, *given)
        p, *gradients = plans.plan(*given), *plans.plan_vjp(upstream, *given)
        log_q, _ = cpu.log_below(*given, ks)
    torch.testing.assert_close(found[0], p, rtol=1e-12, atol=1e-300)
    for one, other in zip(found[1:], gradients, strict=True):
        _rows_are_close(one, other, 1e-10)
    expected, _ = masses.log_below(*given, ks)
    torch.testing.assert_close(log_q.clamp(min=-1e90), expected.clamp(min=-1e90))


def test_plans_are_what_the_operators_run():
    scores = _scores(12).requires_grad_()
    before = dict(_native.calls)
    for loss in (
        so.soft_rank(scores, method="sinkhorn").square().sum(),
        so.losses.TopKCrossEntropyLoss([0.5, 0.5], method="sinkhorn")(scores, torch.arange(3)),
    ):
        loss.backward()
    for name in ("transport_solve", "transport_plan_forward", "transport_plan_backward"):
        assert _native.calls[name] - before.get(name, 0) == 2
