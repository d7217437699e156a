"""Laws of thresholds that stay where they are, however many others there are."""

import softorder as so
from tests.laws.close import assert_at_most, assert_close
from tests.laws.orderings.binding import binds


@binds("soft_rank")
def doubled_scores_double_their_ranks(op, problem):
    twice = problem.scores.repeat_interleave(2, dim=-1)
    ranks = op(twice, temperature=problem.temperature)
    assert_close(ranks[:, 0::2], 2 * op.solve(problem) - 0.5)


@binds("soft_sort", "soft_quantile")
def raising_a_score_lowers_nothing(op, problem):
    raised = problem.scores.clone()
    raised[:, 0] += 1
    after = op(raised, temperature=problem.temperature)
    assert_at_most(op.solve(problem), after, atol=1e-12 * problem.temperature.max().item() + 1e-11)


@binds("soft_permutation")
def first_rows_are_the_first_rows(op, problem):
    for descending in (False, True):
        p = op.solve(problem, descending=descending)
        for k in (0, 1, problem.n // 2, problem.n):
            assert_close(op.solve(problem, descending=descending, k=k), p[:, :k], atol=1e-13)


@binds("soft_permutation")
def descending_rows_add_up_to_a_soft_topk(op, problem):
    """The threshold of a soft top-k is one of the permutation's."""
    k = max(problem.n // 2, 1)
    p = op.solve(problem, descending=True, k=k).sum(-2)
    options = {"temperature": problem.temperature, "method": op.method}
    assert_close(p, so.soft_topk(problem.scores, k, **options))
