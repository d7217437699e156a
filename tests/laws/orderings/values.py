"""Laws of the numbers: sums, order, limits."""

import torch

import softorder as so
from tests.laws.close import assert_at_most, assert_close
from tests.laws.orderings.binding import binds, orderings
from tests.laws.orderings.operators import mirrored


@binds("soft_rank")
def ranks_sum_to_the_triangle_number(op, problem):
    n = problem.n
    for descending in (False, True):
        total = op.solve(problem, descending=descending).sum(-1)
        assert_close(total, torch.full_like(total, n * (n + 1) / 2), atol=1e-12 * n * n)


@binds("soft_rank")
def ranks_are_places(op, problem):
    ranks = op.solve(problem)
    assert ((ranks >= 1 - 1e-12) & (ranks <= problem.n + 1e-12)).all(), ranks


@binds("soft_rank")
def ranks_follow_the_scores(op, problem):
    ranks = op.solve(problem).gather(-1, problem.scores.argsort(-1))
    assert_at_most(ranks[:, :-1], ranks[:, 1:])


@binds("soft_rank")
def equal_scores_get_equal_ranks(op, problem):
    twice = problem.scores.repeat_interleave(2, dim=-1)
    ranks = op(twice, temperature=problem.temperature)
    assert_close(ranks[:, 0::2], ranks[:, 1::2], atol=1e-13)


@binds("soft_rank")
def doubled_scores_double_their_ranks(op, problem):
    twice = problem.scores.repeat_interleave(2, dim=-1)
    ranks = op(twice, temperature=problem.temperature)
    assert_close(ranks[:, 0::2], 2 * op.solve(problem) - 0.5)


@binds("soft_sort")
def sorted_scores_ascend(op, problem):
    t = op.solve(problem)
    assert (t[:, 1:] >= t[:, :-1]).all(), t
    t = op.solve(problem, descending=True)
    assert (t[:, 1:] <= t[:, :-1]).all(), t


@binds("soft_quantile")
def larger_q_gives_more(op, problem):
    t = op.solve(problem)
    assert (t[:, 1:] >= t[:, :-1]).all(), t


@binds("soft_sort", "soft_quantile", "fsum_inverse")
def raising_a_score_lowers_nothing(op, problem):
    raised = problem.scores.clone()
    raised[:, 0] += 1
    after = op(raised, temperature=problem.temperature)
    assert_at_most(op.solve(problem), after, atol=1e-12 * problem.temperature.max().item() + 1e-11)


@binds("soft_permutation")
def rows_and_columns_sum_to_one(op, problem):
    p = op.solve(problem)
    assert ((p >= 0) & (p <= 1)).all(), p
    for axis in (-1, -2):
        assert_close(p.sum(axis), torch.ones_like(problem.scores))


@binds("soft_permutation")
def first_rows_are_the_first_rows(op, problem):
    for descending in (False, True):
        p = op.solve(problem, descending=descending)
        for k in (0, 1, problem.n // 2, problem.n):
            assert_close(op.solve(problem, descending=descending, k=k), p[:, :k], atol=1e-13)


@orderings
def cold_limit_is_hard(op, problem):
    for descending in (False, True):
        cold = op(problem.scores, temperature=1e-9, descending=descending)
        assert_close(cold, op.hard(problem.scores, descending=descending), atol=1e-6)


@binds("soft_rank", "soft_permutation")
def warm_limit_is_even(op, problem):
    warm = op(problem.scores, temperature=1e9)
    even = (problem.n + 1) / 2 if op.name == "soft_rank" else 1 / problem.n
    assert_close(warm, torch.full_like(warm, even), atol=1e-6)


@orderings
def descending_is_ascending_of_the_negative(op, problem):
    negative = op(-problem.scores, temperature=problem.temperature)
    descending = op.solve(problem, descending=True)
    unit = problem.temperature.max().clamp(min=1).item()
    assert_close(mirrored(op, descending), negative, atol=1e-12 * unit)


@binds("soft_permutation")
def descending_rows_add_up_to_a_soft_topk(op, problem):
    """The threshold of a soft top-k is one of the permutation's."""
    if op.method in _without_topk():
        return
    k = max(problem.n // 2, 1)
    p = op.solve(problem, descending=True, k=k).sum(-2)
    options = {"temperature": problem.temperature, "method": op.method}
    assert_close(p, so.soft_topk(problem.scores, k, **options))


def _without_topk():
    served = {row.name for row in so.methods() if row.operator == "soft_topk"}
    return {row.name for row in so.methods()} - served
