"""Laws of the extremes: one score, no score, NaN."""

import math

import torch

from tests.laws.close import assert_close
from tests.laws.orderings.binding import orderings


@orderings
def a_single_score_is_where_it_is(op, problem):
    x = problem.scores[:, :1]
    result = op(x, temperature=problem.temperature)
    if op.name == "soft_quantile":
        assert result.isfinite().all()
        return
    expected = x if op.name == "soft_sort" else torch.ones_like(x)
    expected = expected.unsqueeze(-1) if op.name == "soft_permutation" else expected
    assert_close(result, expected)


def an_empty_batch_is_empty(op, problem):
    full = op.solve(problem)
    none = op(problem.scores[:0].requires_grad_(), temperature=problem.temperature[:0])
    assert none.shape == (0, *full.shape[1:])
    assert none.requires_grad
    assert op(problem.scores[:0], temperature=2.0).shape == none.shape


def a_row_of_no_scores_is_empty(op, problem):
    four = dict.fromkeys(("soft_quantile", "fsum", "fsum_inverse"), (4,))
    rows, shape = len(problem.scores), {"soft_permutation": (0, 0)} | four
    result = op(problem.scores[:, :0].requires_grad_(), temperature=problem.temperature)
    assert result.shape == (rows, *shape.get(op.name, (0,)))
    assert result.requires_grad
    assert (result == 0).all() if op.name == "fsum" else result.isnan().all()


def nan_stays_in_its_row(op, problem):
    scores = torch.cat([problem.scores, problem.scores])
    temperature = problem.temperature.repeat(2)
    scores[0, -1] = math.nan
    result = op(scores, temperature=temperature)
    assert result[0].isnan().all()
    assert_close(result[len(problem.scores) :], op.solve(problem), atol=1e-11)
