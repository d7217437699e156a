"""Laws of the extremes: k at its ends, one score, no score, infinities, NaN."""

import math

import torch

from tests.laws.close import assert_close


def k_zero_takes_nothing(op, problem):
    _assert_constant(op, problem, k=0.0, value=0.0)


def k_n_takes_everything(op, problem):
    _assert_constant(op, problem, k=float(problem.n), value=1.0)


def a_single_score_gets_k(op, problem):
    share = problem.k / problem.n
    p = op(problem.scores[:, :1], share, temperature=problem.temperature)
    assert_close(p, share.unsqueeze(-1))


def an_empty_batch_is_empty(op, problem):
    none = problem.scores[:0].requires_grad_()
    k, temperature = problem.k[:0], problem.temperature[:0]
    assert op(none, 1, temperature=2.0).shape == none.shape
    result = op(none, k, temperature=temperature)
    assert result.shape == none.shape
    assert result.requires_grad


def a_row_of_no_scores_is_empty(op, problem):
    none = problem.scores[:, :0].requires_grad_()
    result = op(none, 0, temperature=problem.temperature)
    assert result.shape == none.shape
    assert result.requires_grad


def plus_infinity_is_certain(op, problem):
    scores = torch.nn.functional.pad(problem.scores, (1, 1), value=math.inf)
    p = op(scores, problem.k + 2, temperature=problem.temperature)
    assert (p[:, [0, -1]] == 1).all()
    assert_close(p[:, 1:-1], problem.solve(op))


def too_many_at_plus_infinity_share_k(op, problem):
    crowd = problem.n + 1
    scores = torch.nn.functional.pad(problem.scores, (crowd, 0), value=math.inf)
    p = op(scores, problem.k, temperature=problem.temperature)
    assert_close(p[:, :crowd], (problem.k / crowd).unsqueeze(-1).expand(-1, crowd))
    assert (p[:, crowd:] == 0).all()


def k_at_plus_infinity_leave_nothing(op, problem):
    scores = torch.nn.functional.pad(problem.scores, (1, 1), value=math.inf).requires_grad_()
    k = torch.full_like(problem.k, 2).requires_grad_()
    p = op(scores, k, temperature=problem.temperature)
    assert (p[:, [0, -1]] == 1).all()
    assert (p[:, 1:-1] == 0).all()
    by_scores, by_k = torch.autograd.grad(p.sum(), (scores, k))
    assert (by_scores == 0).all()
    assert ((by_k >= 0) & (by_k <= 1)).all()  # the mass is k, but for a kink here


def infinities_take_no_gradient(op, problem):
    scores = torch.nn.functional.pad(problem.scores, (1, 0), value=math.inf)
    scores = torch.nn.functional.pad(scores, (0, 1), value=-math.inf).requires_grad_()
    p = op(scores, problem.k + 1, temperature=problem.temperature)
    upstream = torch.randn(p.shape, dtype=p.dtype, generator=problem.generator())
    (gradient,) = torch.autograd.grad(p, scores, upstream)
    assert (gradient[:, [0, -1]] == 0).all()
    assert gradient.isfinite().all()


def nan_stays_in_its_row(op, problem):
    scores = torch.cat([problem.scores, problem.scores])
    k, temperature = problem.k.repeat(2), problem.temperature.repeat(2)
    scores[0, -1] = math.nan
    p = op(scores, k, temperature=temperature)
    assert p[0].isnan().all()
    assert_close(p[len(problem.k) :], problem.solve(op))


def _assert_constant(op, problem, k, value):
    inputs = [
        problem.scores.clone().requires_grad_(),
        torch.full_like(problem.k, k).requires_grad_(),
        problem.temperature.clone().requires_grad_(),
    ]
    p = op(inputs[0], inputs[1], temperature=inputs[2])
    assert (p == value).all(), p
    upstream = torch.randn(p.shape, dtype=p.dtype, generator=problem.generator())
    for gradient in torch.autograd.grad(p, inputs, upstream):
        assert (gradient == 0).all(), gradient
