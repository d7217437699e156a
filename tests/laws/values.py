"""Laws of the numbers: mass, order, limits."""

import torch

import softorder as so
from tests.laws.close import ATOL, assert_at_most, assert_close


def mass_is_k(op, problem):
    excess = problem.solve(op).sum(-1) - problem.k
    assert (excess.abs() <= ATOL * problem.k.clamp(min=1)).all(), excess


def stays_between_zero_and_one(op, problem):
    p = problem.solve(op)
    assert ((p >= 0) & (p <= 1)).all(), p


def order_is_preserved(op, problem):
    order = problem.scores.argsort(-1)
    sorted_p = problem.solve(op).gather(-1, order)
    assert_at_most(sorted_p[:, :-1], sorted_p[:, 1:], atol=1e-15)


def equal_scores_get_equal_shares(op, problem):
    twice = problem.scores.repeat_interleave(2, dim=-1)
    p = op(twice, 2 * problem.k, temperature=problem.temperature)
    assert_close(p[:, 0::2], p[:, 1::2], atol=1e-15)
    assert_close(p[:, 0::2], problem.solve(op))


def all_equal_scores_get_k_over_n(op, problem):
    flat = problem.scores[:, :1].expand(-1, problem.n)
    p = op(flat, problem.k, temperature=problem.temperature)
    assert_close(p, (problem.k / problem.n).unsqueeze(-1).expand_as(p))


def larger_k_gives_more_to_everyone(op, problem):
    larger = (problem.k + problem.n) / 2
    more = op(problem.scores, larger, temperature=problem.temperature)
    assert_at_most(problem.solve(op), more)


def raising_a_score_helps_it_alone(op, problem):
    raised = problem.scores.clone()
    raised[:, 0] += 1
    before, after = problem.solve(op), op(raised, problem.k, temperature=problem.temperature)
    assert_at_most(before[:, 0], after[:, 0])
    assert_at_most(after[:, 1:], before[:, 1:])


def cold_limit_is_hard(op, problem):
    cold = op(problem.scores, problem.k, temperature=1e-9)
    assert_close(cold, so.hard.topk(problem.scores, problem.k), atol=1e-6)


def warm_limit_is_even(op, problem):
    warm = op(problem.scores, problem.k, temperature=1e9)
    assert_close(warm, (problem.k / problem.n).unsqueeze(-1).expand_as(warm), atol=1e-6)


def smallest_is_largest_of_the_negative(op, problem):
    negative = op(-problem.scores, problem.k, temperature=problem.temperature)
    assert_close(problem.solve(op, largest=False), negative, atol=1e-15)


def what_the_top_leaves_is_the_bottom(op, problem):
    rest = op(problem.scores, problem.n - problem.k, temperature=problem.temperature, largest=False)
    assert_close(problem.solve(op), torch.ones_like(rest) - rest)
