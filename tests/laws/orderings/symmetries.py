"""Laws of what a change of the scores does to the answer."""

import torch

from tests.laws.close import assert_close
from tests.laws.orderings.binding import orderings, orderings_and_sums
from tests.laws.orderings.operators import is_value, reordered


@orderings_and_sums
def follows_a_permutation(op, problem):
    order = torch.randperm(problem.n, generator=problem.generator())
    shuffled = op(problem.scores[:, order], temperature=problem.temperature)
    assert_close(shuffled, reordered(op, op.solve(problem), order), atol=_unit(op, problem))


@orderings
def moves_with_a_shift(op, problem):
    for shift in (-(2.0**20), 3.0, 2.0**30):
        shifted = op(problem.scores + shift, temperature=problem.temperature)
        expected = op.solve(problem) + (shift if is_value(op) else 0)
        rounding = 1e-15 * abs(shift) if is_value(op) else 0
        assert_close(shifted, expected, atol=_unit(op, problem) + rounding)


@orderings
def scales_with_scores_and_temperature(op, problem):
    for factor in (2.0**-7, 2.0**9, 2.0**-900, 2.0**900):
        scaled = op(problem.scores * factor, temperature=problem.temperature * factor)
        scaled = scaled / factor if is_value(op) else scaled
        assert_close(scaled, op.solve(problem), atol=_unit(op, problem))


@orderings_and_sums
def rows_do_not_meet(op, problem):
    rows = zip(problem.scores, problem.temperature, strict=True)
    alone = torch.stack([op(x, temperature=t) for x, t in rows])
    assert_close(op.solve(problem), alone, atol=_unit(op, problem))


def _unit(op, problem):
    """Values are sharp to a part of the temperature; the rest to its own size."""
    largest = problem.temperature.max().item() if is_value(op) else 1.0
    return 1e-12 * max(1.0, largest)
