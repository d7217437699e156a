"""Soft top-k of rows that are cut among ranks: as on one machine."""

import itertools
import os
import time

import numpy as np
import pytest
import torch
from torch import distributed
from torch.distributed.tensor.debug import CommDebugMode

import softorder as so
from tests import bank
from tests.distributed.parts import own, special_rows
from tests.distributed.team import Team
from tests.oracles.densities import BUILT_IN
from tests.user_density import Student

_BOUND = {np.float64: 1e-12, np.float32: 2e-6}
_OPERATORS = {"soft_topk": so.soft_topk, "log_soft_topk": so.log_soft_topk}


def _upstream(shape):
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape))


def _solve(operator, scores, k, temperature, upstream, how=None, **options):
    """The result and its gradients; of one's own part if `how` tells how rows are cut."""
    if how is not None:
        scores, upstream = own(scores, how), own(upstream, how)
    x, *numbers = (torch.as_tensor(v).clone() for v in (scores, k, temperature))
    inputs = [v.requires_grad_() for v in (x, *numbers)]
    function = _OPERATORS[operator] if how is None else getattr(so.distributed, operator)
    result = function(x, numbers[0], temperature=numbers[1], **options)
    reached = torch.where(result.isfinite(), result, 0.0)
    gradients = torch.autograd.grad((reached * upstream.to(result.dtype)).sum(), inputs)
    return [v.detach().numpy() for v in (result, *gradients)]


def _assert_alike(team, operator, problem, bound, how, **options):
    """Results of ranks, put together, are those of one process; relative to what is largest."""
    answers = team.run(_solve_problem, operator, problem, how, options)
    expected = _solve_problem(operator, problem, None, options)
    spoiled = np.isnan(problem[0]).any(-1)
    for i, whole in enumerate(expected):
        if i > 0:  # of a row with NaN one machine says NaN here and 0 there
            whole = np.where(spoiled[:, None] if i == 1 else spoiled, 0, whole)
        if i < 2:
            found = np.concatenate([answer[i] for answer in answers], -1)
        else:  # every rank has all of the gradient of k and of the temperature
            found = answers[-1][i]
            for answer in answers:
                np.testing.assert_array_equal(answer[i], found)
        finite = np.isfinite(whole)
        np.testing.assert_array_equal(np.where(finite, 0, found), np.where(finite, 0, whole))
        size = np.maximum(np.abs(np.where(finite, whole, 0)), 1)
        if i >= 2:
            size = size * np.maximum(np.abs(problem[0][np.isfinite(problem[0])]).max(), 1)
        error = np.abs(np.where(finite, found, 0) - np.where(finite, whole, 0)) / size
        assert error.max() <= bound, (i, error.max(), np.unravel_index(error.argmax(), error.shape))


def _solve_problem(operator, problem, how, options):
    scores, k, temperature = problem
    return _solve(operator, scores, k, temperature, _upstream(scores.shape), how, **options)


_SOME = [
    pytest.param(d, marks=[] if d in ("laplace", "uniform") else [pytest.mark.slow])
    for d in BUILT_IN
]


@pytest.mark.parametrize("density", _SOME)
@pytest.mark.parametrize("dtype", _BOUND)
@pytest.mark.parametrize("n", [5, 40, pytest.param(1000, marks=pytest.mark.slow)])
def test_p_on_the_bank(team, density, dtype, n):
    labels, *problem = bank.problems(bank.FAMILIES, n, dtype)
    answers = team.run(_only_p, "soft_topk", problem, density)
    found = np.concatenate(answers, -1)
    scores, k, temperature = map(torch.from_numpy, problem)
    expected = so.soft_topk(scores, k, method=density, temperature=temperature).numpy()
    error = np.abs(found - expected).max(-1)
    assert error.max() <= _BOUND[dtype], (error.max(), labels[error.argmax()])


def _only_p(operator, problem, density, how="uneven"):
    scores, k, temperature = problem
    x, k, temperature = (torch.as_tensor(v) for v in (own(scores, how), k, temperature))
    return getattr(so.distributed, operator)(x, k, method=density, temperature=temperature).numpy()


@pytest.mark.parametrize("operator", _OPERATORS)
@pytest.mark.parametrize("density", ["laplace", "normal", "uniform"])
@pytest.mark.parametrize("how", ["even", "uneven", "first"])
def test_gradients(team, operator, density, how):
    rng = np.random.default_rng(1)
    scores = rng.standard_normal((6, 11))
    k = np.array([1.0, 2.5, 5.0, 0.5, 10.0, 3.0])
    temperature = np.array([0.1, 0.3, 1.0, 1.0, 0.5, 10.0])
    problem = scores, k, temperature
    _assert_alike(team, operator, problem, 1e-12, how, method=density)


@pytest.mark.parametrize("operator", _OPERATORS)
@pytest.mark.parametrize("k", [0.0, 2.0, 2.5, 6.0])
def test_infinities_and_nan(team, operator, k):
    scores = special_rows()
    problem = scores, np.full(len(scores), k), np.full(len(scores), 0.5)
    _assert_alike(team, operator, problem, 1e-12, "uneven")


def _options(scores, mask):
    p = so.distributed.soft_topk(
        torch.from_numpy(own(scores, "uneven")).movedim(-1, 0),
        2,
        dim=0,
        largest=False,
        mask=torch.from_numpy(own(mask, "uneven")).movedim(-1, 0),
        method=Student(),
    )
    return p.movedim(0, -1).numpy()


def test_axis_mask_smallest_and_a_density_of_the_user(team):
    rng = np.random.default_rng(2)
    scores, mask = rng.standard_normal((3, 9)), rng.random((3, 9)) < 0.7
    found = np.concatenate(team.run(_options, scores, mask), -1)
    x, m = torch.from_numpy(scores), torch.from_numpy(mask)
    expected = so.soft_topk(x, 2, largest=False, mask=m, method=Student())
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


# ---- second order and forward mode --------------------------------------------------------------


def _hessian_product(scores, operator, how=None):
    x = scores if how is None else own(scores, how)
    v = torch.cos(torch.from_numpy(scores)) if how is None else torch.cos(torch.from_numpy(x))
    x, k = torch.from_numpy(x).clone().requires_grad_(), torch.tensor(2.5, dtype=torch.float64)
    tau = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    k.requires_grad_()
    function = _OPERATORS[operator] if how is None else getattr(so.distributed, operator)
    value = (function(x, k, temperature=tau, method="logistic") ** 2 * v).sum()
    firsts = torch.autograd.grad(value, (x, k, tau), create_graph=True)
    along = firsts[0] @ v + firsts[1] + 2 * firsts[2]  # all ranks have these alike: they count once
    return [g.detach().numpy() for g in torch.autograd.grad(along, (x, k, tau))]


@pytest.mark.parametrize("operator", _OPERATORS)
def test_second_order(pair, operator):
    scores = np.random.default_rng(3).standard_normal(8)
    expected = _hessian_product(scores, operator)
    answers = pair.run(_hessian_product, scores, operator, "even")
    found = [np.concatenate([answer[0] for answer in answers])]
    found += [answers[0][i] for i in (1, 2)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def _tangent(scores, how=None):
    x = torch.from_numpy(scores if how is None else own(scores, how))
    function = so.soft_topk if how is None else so.distributed.soft_topk
    return torch.func.jvp(lambda x: function(x, 2.5, temperature=0.7), (x,), (x.cos(),))[1].numpy()


def test_forward_mode(pair):
    scores = np.random.default_rng(4).standard_normal(8)
    found = np.concatenate(pair.run(_tangent, scores, "even"))
    np.testing.assert_allclose(found, _tangent(scores), rtol=1e-10, atol=1e-13)


# ---- what travels -------------------------------------------------------------------------------


class _Traffic(CommDebugMode):
    """Collectives, and how many numbers each has."""

    def __init__(self):
        super().__init__()
        self.numbers = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if "allreduce" in str(function) or "all_reduce" in str(function):
            self.numbers.append(sum(v.numel() for v in _tensors(args)))
        return super().__torch_dispatch__(function, types, args, kwargs)


def _tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)


def _traffic(scores, k, temperature, density):
    x = torch.from_numpy(own(scores, "even")).requires_grad_()
    with _Traffic() as there:
        p = so.distributed.soft_topk(x, k, method=density, temperature=temperature)
    with _Traffic() as back:
        p.backward(torch.ones_like(p))
    names = {str(name) for mode in (there, back) for name in mode.get_comm_counts()}
    return there.numbers, back.numbers, names


@pytest.mark.parametrize("density", ["laplace", "logistic", "normal", "uniform"])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 10.0])
def test_a_bell_takes_six_sums(pair, density, temperature):
    n = 1000
    scores = np.random.default_rng(5).standard_normal((1, n)).astype(np.float32)
    for k in (n // 100, n // 10, n // 2):
        answers = pair.run(_traffic, scores, k, temperature, density)
        there, back, names = answers[0]
        assert all(answer == answers[0] for answer in answers)
        assert 1 <= len(there) <= 6, (k, there)
        assert max(there) <= 32
        assert (len(back), max(back)) == (1, 4)
        assert all("reduce" in name for name in names), names


@pytest.mark.parametrize("temperature", [0.03, 0.1])
@pytest.mark.slow
def test_a_sharper_bell_takes_no_more_as_a_rule(pair, temperature):
    n = 1000
    scores = np.random.default_rng(6).standard_normal((9, 1, n)).astype(np.float32)
    rows = itertools.product(scores, (n // 100, n // 10, n // 2))
    numbers = [len(pair.run(_traffic, x, k, temperature, "laplace")[0][0]) for x, k in rows]
    assert np.median(numbers) <= 6
    assert max(numbers) <= 9


def _all_traffic(problem, density):
    scores, k, temperature = problem
    rows = zip(scores, k, temperature, strict=True)
    found = []
    for row, size, tau in rows:
        there, _, names = _traffic(row[None], float(size), float(tau), density)
        assert all("reduce" in name for name in names), names
        found.append((len(there), max(there)))
    return found


@pytest.mark.one_of(3)
@pytest.mark.parametrize("density", _SOME)
@pytest.mark.parametrize("n", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_no_row_takes_more_than_sixteen(pair, density, n):
    labels, *problem = bank.problems(bank.FAMILIES, n, np.float64)
    some = slice(None, None, 7 if n < 100 else 1)
    labels, problem = labels[some], [v[some] for v in problem]
    first, second = pair.run(_all_traffic, problem, density)
    assert first == second
    worst = max(range(len(first)), key=lambda i: first[i][0])
    assert first[worst][0] <= 16, labels[worst]
    assert max(numbers for _, numbers in first) <= 32


# ---- what goes wrong ----------------------------------------------------------------------------


def _different(what):
    rank = distributed.get_rank()
    k, tau = (2 + rank, 1.0) if what == "k" else (2, 1.0 + rank)
    with pytest.raises(ValueError, match=f"{what} must be the same on all ranks, but is between"):
        so.distributed.soft_topk(torch.randn(2, 5), k, temperature=tau, check=True)
    so.distributed.soft_topk(torch.randn(2, 5), 2, check=True)
    with pytest.raises(ValueError, match=r"k must be between 0 and \d+, the number of scores on"):
        so.distributed.soft_topk(torch.randn(2, 5), 99, check=True)


@pytest.mark.parametrize("what", ["k", "temperature"])
def test_different_numbers_are_found_out(pair, what):
    pair.run(_different, what)


def test_without_a_process_group():
    with pytest.raises(RuntimeError, match="init_process_group"):
        so.distributed.soft_topk(torch.randn(5), 2)


def _survive():
    """Rank 1 dies; the others get an error from their next exchange."""
    if distributed.get_rank() == 1:
        os._exit(1)
    started = time.monotonic()
    with pytest.raises(RuntimeError):
        so.distributed.soft_topk(torch.randn(3, 50), 5)
    return time.monotonic() - started


@pytest.mark.slow
def test_a_rank_that_dies_is_an_error_on_the_others():
    team = Team(2)
    (seconds,) = team.run(_survive, dying=(1,))
    team.stop()
    assert seconds <= 40  # the patience of the group is 30 seconds
