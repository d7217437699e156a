"""Doubly stochastic matrices, against Sinkhorn's own iteration and against the best assignment."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

import softorder as so
from softorder.kernels import balance


def _generator(seed=0):
    return torch.Generator().manual_seed(seed)


def _scores(*shape, seed=0):
    return torch.randn(*shape, dtype=torch.float64, generator=_generator(seed))


def _by_turns(scores, temperature, turns=1000):
    """The textbook: rows and columns are divided by their sums, in the log domain."""
    log_plan = scores.numpy() / temperature
    for _ in range(turns):
        log_plan = log_plan - logsumexp(log_plan, axis=-1, keepdims=True)
        log_plan = log_plan - logsumexp(log_plan, axis=-2, keepdims=True)
    return torch.from_numpy(np.exp(log_plan))


@pytest.mark.parametrize("temperature", [0.5, 1.0, 20.0])
@pytest.mark.parametrize("n", [2, 7])
def test_it_is_the_limit_of_sinkhorns_iteration(n, temperature):
    scores = _scores(4, n, n)
    found = so.sinkhorn(scores, temperature=temperature)
    torch.testing.assert_close(found, _by_turns(scores, temperature), rtol=1e-10, atol=1e-12)


def test_rounds_of_dividing_leave_a_cold_matrix_far_from_the_limit():
    """The example of docs/sampling.md."""
    rows = [[3.0, 0.0, 0.0], [2.9, 0.0, 0.0], [0.0, 0.0, 1.0]]
    scores = torch.tensor(rows, dtype=torch.float64)
    for turns in (20, 100):
        sums = _by_turns(scores, 0.01, turns).sum(-1).tolist()
        assert sums == pytest.approx([0.5, 0.5, 2.0], abs=1e-4)
    found = so.sinkhorn(scores, temperature=0.01)
    torch.testing.assert_close(found, _by_turns(scores, 0.01, 10_000), rtol=0, atol=1e-3)


@pytest.mark.parametrize("temperature", [1.0, 1e-2, 1e-4, 1e-8, 1e-300])
def test_rows_and_columns_sum_to_one(temperature):
    rounding = 1e-11 + 1e-14 / max(temperature, 1e-15)
    for n in (1, 3, 16, 50):
        plan = so.sinkhorn(_scores(5, n, n), temperature=temperature)
        ones = torch.ones(5, n, dtype=torch.float64)
        for axis in (-1, -2):
            torch.testing.assert_close(plan.sum(axis), ones, rtol=0, atol=min(rounding, 1e-2))


def test_the_cold_limit_is_the_best_assignment():
    scores = _scores(20, 12, 12)
    plan = so.sinkhorn(scores, temperature=1e-5)
    for matrix, p in zip(scores, plan, strict=True):
        rows, columns = linear_sum_assignment(matrix.numpy(), maximize=True)
        best = torch.zeros(12, 12, dtype=torch.float64)
        best[rows, columns] = 1.0
        torch.testing.assert_close(p, best, rtol=0, atol=1e-6)


def test_an_outer_product_is_the_sort_by_transport():
    """scores_ai = a x_i is Sinkhorn sort's plan, of squared costs at twice the temperature."""
    x = _scores(6, 9)
    matrix = torch.arange(9, dtype=torch.float64).unsqueeze(-1) * x.unsqueeze(-2)
    wanted = so.soft_permutation(x, method="sinkhorn", temperature=0.6)
    torch.testing.assert_close(so.sinkhorn(matrix, temperature=0.3), wanted, rtol=0, atol=1e-11)


def test_derivatives():
    scores = _scores(3, 4, 4).requires_grad_()
    temperature = torch.tensor([0.3, 1.0, 5.0], dtype=torch.float64, requires_grad=True)

    def run(scores, temperature):
        return so.sinkhorn(scores, temperature=temperature)

    arguments = scores, temperature
    assert torch.autograd.gradcheck(run, arguments, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(run, arguments)


def test_the_gradient_of_a_cold_plan():
    """Against differences in the plan: two columns compete, the rest is certain to 1e-20."""
    scores = torch.diag(torch.tensor([2.0, 1.0, 2.0, 3.0], dtype=torch.float64))
    scores[0, 1] = scores[1, 0] = 1.49
    weight = _scores(4, 4, seed=1)

    def run(scores):
        return (so.sinkhorn(scores, temperature=0.03) * weight).sum()

    (found,) = torch.autograd.grad(run(scores.requires_grad_()), scores)
    eye = torch.eye(16, dtype=torch.float64).reshape(16, 4, 4)
    step, at = 1e-5, scores.detach()
    wanted = torch.stack([(run(at + step * e) - run(at - step * e)) / (2 * step) for e in eye])
    assert wanted.abs().max() > 0.5
    torch.testing.assert_close(found.flatten(), wanted, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("temperature", [0.01, 0.001])
def test_the_gradient_of_cold_plans_that_fall_into_groups(temperature):
    """A shift of a row or a column changes nothing, so that gradients sum to 0 along both."""
    scores, weight = _scores(200, 5, 5).requires_grad_(), _scores(200, 5, 5, seed=1)

    def run(scores):
        return (so.sinkhorn(scores, temperature=temperature) * weight).sum((-1, -2))

    (found,) = torch.autograd.grad(run(scores).sum(), scores)
    assert found.abs().max() > 10
    for axis in (-1, -2):
        assert found.sum(axis).abs().max() < 1e-8
    way, step, at = _scores(200, 5, 5, seed=2), 1e-4 * temperature, scores.detach()
    wanted = (run(at + step * way) - run(at - step * way)) / (2 * step)
    torch.testing.assert_close((found * way).sum((-1, -2)), wanted, rtol=1e-4, atol=1e-3)
    _, back = torch.func.vjp(run, at)  # the formula for torch.func
    torch.testing.assert_close(back(torch.ones(200, dtype=torch.float64))[0], found)


def test_vmap_and_compile():
    scores, weight = _scores(3, 5, 5).requires_grad_(), _scores(3, 5, 5, seed=1)

    def run(scores):
        return so.sinkhorn(scores, temperature=0.5)

    wanted = run(scores)
    torch.testing.assert_close(torch.vmap(run)(scores.detach()), wanted.detach())
    per_matrix = torch.vmap(torch.func.grad(lambda s, w: (run(s) * w).sum()))(scores, weight)
    (gradient,) = torch.autograd.grad((wanted * weight).sum(), scores)
    torch.testing.assert_close(per_matrix, gradient)
    compiled = torch.compile(run, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(scores), wanted)
    (again,) = torch.autograd.grad((compiled(scores) * weight).sum(), scores)
    torch.testing.assert_close(again, gradient)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_dtypes(dtype):
    scores = _scores(2, 6, 6).to(dtype)
    found = so.sinkhorn(scores, temperature=0.4)
    assert found.dtype == dtype
    assert torch.equal(found, so.sinkhorn(scores.double(), temperature=0.4).to(dtype))
    draws = so.gumbel_sinkhorn(scores, (3,), generator=_generator())
    assert draws.dtype == dtype
    assert draws.shape == (3, 2, 6, 6)


def test_what_is_not_finite_spoils_its_matrix_alone():
    scores = _scores(4, 3, 3)
    wanted = so.sinkhorn(scores)
    for place, value in enumerate((math.nan, math.inf, -math.inf)):
        scores[place, 1, 2] = value
    found = so.sinkhorn(scores)
    assert found[:3].isnan().all()
    assert torch.equal(found[3], wanted[3])


def test_few_and_no_entries():
    assert so.sinkhorn(torch.zeros(2, 1, 1)).tolist() == [[[1.0]], [[1.0]]]
    assert so.sinkhorn(torch.zeros(2, 0, 0)).shape == (2, 0, 0)
    assert so.sinkhorn(torch.zeros(0, 3, 3)).shape == (0, 3, 3)


def test_matrices_do_not_see_each_other():
    scores = _scores(6, 8, 8)
    temperature = torch.logspace(-3, 1, 6, dtype=torch.float64)
    together = so.sinkhorn(scores, temperature=temperature)
    alone = [so.sinkhorn(s, temperature=t.item()) for s, t in zip(scores, temperature, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone), rtol=0, atol=1e-11)


def test_few_iterations_are_enough_and_too_few_are_told():
    scores = _scores(50, 15, 15)
    options = {"tolerance": 1e-12, "max_iterations": 1000}
    one = torch.ones((), dtype=torch.float64)
    assert balance.solve(scores, one, **options).iterations.max() <= 8
    found = balance.solve(scores, 0.01 * one, **options)
    assert found.converged.all()
    assert found.iterations.max() <= 200
    with pytest.warns(UserWarning, match="sinkhorn stopped after 3 iterations"):
        so.sinkhorn(scores, temperature=0.01, max_iterations=3)


def test_gumbel_sinkhorn_is_sinkhorn_of_perturbed_scores():
    scores = _scores(2, 4, 4).requires_grad_()
    options = {"noise": 0.7, "temperature": 0.5, "generator": _generator(3)}
    found = so.gumbel_sinkhorn(scores, (5,), **options)
    keys = so.perturb(scores, (5,), scale=0.7, generator=_generator(3))
    torch.testing.assert_close(found, so.sinkhorn(keys, temperature=0.5))
    (gradient,) = torch.autograd.grad(found.square().sum(), scores)
    assert gradient.abs().min() > 0


def test_cold_gumbel_sinkhorn_draws_perturbed_assignments():
    """n = 2: the difference of four Gumbel numbers decides; its law by a quadrature of logistics.

    X = (G + G') - (G'' + G''') is a sum of two logistic numbers. The standard error of 20,000 draws
    is below 0.0036: 5 of them are missed once in 1.7 million times.
    """
    scores = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    draws = so.gumbel_sinkhorn(scores, (20_000,), temperature=0.01, generator=_generator(1))
    grid = torch.linspace(-60, 60, 24_001, dtype=torch.float64)
    density = torch.sigmoid(grid) * torch.sigmoid(-grid)
    chance = torch.trapezoid(density * torch.sigmoid(1 + grid), grid)
    assert abs(draws[:, 0, 0].mean() - chance) < 5 * 0.0036


def test_wrong_arguments():
    with pytest.raises(ValueError, match=r"scores must be square matrices, .* \(2, 3\)"):
        so.sinkhorn(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="temperature must be finite and > 0"):
        so.sinkhorn(torch.zeros(2, 2), temperature=0.0)
    with pytest.raises(ValueError, match="temperature must broadcast"):
        so.sinkhorn(torch.zeros(4, 2, 2), temperature=torch.ones(2))
    with pytest.raises(ValueError, match="tolerance must be finite and > 0"):
        so.sinkhorn(torch.zeros(2, 2), tolerance=0.0)
    with pytest.raises(TypeError, match="max_iterations must be an int"):
        so.sinkhorn(torch.zeros(2, 2), max_iterations=2.5)
    with pytest.raises(ValueError, match="noise must be finite and >= 0"):
        so.gumbel_sinkhorn(torch.zeros(2, 2), noise=-1.0)
