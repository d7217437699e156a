"""Laws of the forms that arguments may have: several axes, kept ones, hard=True, jagged rows."""

import torch

from tests.laws.close import assert_close
from tests.laws.forms import _agree, _joined, _shorter_and_shorter
from tests.laws.inputs import _with_mirror, _without_the_last
from tests.laws.orderings.binding import binds, orderings


@orderings
def several_axes_are_one(op, problem):
    block, temperature = _with_mirror(problem.scores), problem.temperature
    for mask in (None, _without_the_last(block)):
        found = op(block, temperature=temperature, dim=(0, 2), mask=mask)
        joined = None if mask is None else _joined(mask)
        assert_close(found, op(_joined(block), temperature=temperature, mask=joined))
    everything = op(block, temperature=temperature[0], dim=None)
    assert_close(everything, op(block.flatten(), temperature=temperature[0]))


def numbers_may_keep_their_axis(op, problem):
    expected, temperature = op.solve(problem), problem.temperature.unsqueeze(-1)
    assert_close(op(problem.scores, temperature=temperature), expected)
    assert_close(op(problem.scores.T, temperature=temperature.T, dim=0), expected)


@binds("soft_rank", "soft_sort", "soft_quantile", "fsum")
def rows_of_different_lengths_are_rows_alone(op, problem):
    scores, rows = _shorter_and_shorter(problem.scores)
    found = op(scores, temperature=problem.temperature)
    found = found.values() if found.is_nested else found.flatten()
    each = [op(row, temperature=tau) for row, tau in zip(rows, problem.temperature, strict=True)]
    assert_close(found, torch.cat(each), atol=1e-10)  # quantiles by another solver


@orderings
def hard_is_the_limit_with_the_soft_gradient(op, problem):
    for mask in (None, _without_the_last(problem.scores)):
        limit = op.hard(problem.scores, mask=mask)
        _agree(op, (problem.scores, problem.temperature), limit, mask=mask)
