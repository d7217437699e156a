"""Laws of what may be changed without changing the answer."""

import torch

from tests.laws.close import assert_close


def follows_a_permutation(op, problem):
    order = torch.randperm(problem.n, generator=problem.generator())
    shuffled = op(problem.scores[:, order], problem.k, temperature=problem.temperature)
    assert_close(shuffled, problem.solve(op)[:, order])


def ignores_a_shift(op, problem):
    for shift in (-(2.0**20), 3.0, 2.0**30):
        shifted = op(problem.scores + shift, problem.k, temperature=problem.temperature)
        assert_close(shifted, problem.solve(op))


def only_scores_over_temperature_count(op, problem):
    for factor in (2.0**-7, 2.0**9):
        scaled = op(problem.scores * factor, problem.k, temperature=problem.temperature * factor)
        assert_close(scaled, problem.solve(op))


def works_at_huge_and_tiny_scales(op, problem):
    # not further: differences of scores must not become denormal
    for factor in (2.0**-900, 2.0**900):
        scaled = op(problem.scores * factor, problem.k, temperature=problem.temperature * factor)
        assert_close(scaled, problem.solve(op))


def rows_do_not_meet(op, problem):
    rows = zip(problem.scores, problem.k, problem.temperature, strict=True)
    alone = torch.stack([op(x, k, temperature=t) for x, k, t in rows])
    assert_close(problem.solve(op), alone)
