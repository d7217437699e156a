"""Laws of FSum and of its inverse, wherever they are asked for."""

import math

import torch

import softorder as so
from tests.laws.close import assert_close
from tests.laws.orderings.binding import binds, sums
from tests.laws.orderings.operators import is_value
from tests.laws.padding import _GARBAGE, _pad


@sums
def sums_and_roots_ascend(op, problem):
    at = _places(op, problem).sort(-1).values
    result = op.solve(problem, at=at)
    assert (result.diff(dim=-1) >= -1e-12 * _unit(op, problem)).all(), result


@sums
def the_order_of_points_does_not_matter(op, problem):
    at = _places(op, problem)
    expected = op.solve(problem, at=at).flip(-1)
    assert_close(op.solve(problem, at=at.flip(-1)), expected, atol=1e-12 * _unit(op, problem))


@sums
def points_may_be_shared(op, problem):
    """1-D, with rows of their own, or one row that broadcasts."""
    at = _places(op, problem)[0]
    expected = op.solve(problem, at=at.expand(len(problem.scores), -1))
    for shared in (at, at.unsqueeze(0)):
        assert_close(op.solve(problem, at=shared), expected)


@sums
def scores_and_points_move_together(op, problem):
    for shift in (-(2.0**20), 3.0):
        at = _places(op, problem)
        expected = op.solve(problem, at=at) + (shift if is_value(op) else 0)
        at = at if is_value(op) else at + shift
        result = op(problem.scores + shift, temperature=problem.temperature, at=at)
        # a point that is rounded moves by that much of the temperature
        rounding = 1e-15 * abs(shift) / (1 if is_value(op) else problem.temperature.min().item())
        assert_close(result, expected, atol=1e-12 * _unit(op, problem) + problem.n * rounding)


@sums
def scores_points_and_temperature_scale_together(op, problem):
    for factor in (2.0**-7, 2.0**9, 2.0**-900, 2.0**900):
        at = _places(op, problem)
        expected = op.solve(problem, at=at) * (factor if is_value(op) else 1)
        temperature = problem.temperature * factor
        at = at if is_value(op) else at * factor
        result = op(problem.scores * factor, temperature=temperature, at=at)
        unit = _unit(op, problem) * (factor if is_value(op) else 1)
        assert_close(result, expected, atol=1e-12 * unit)


@binds("fsum")
def sums_at_the_scores_are_ranks(op, problem):
    certain = torch.nn.functional.pad(problem.scores, (1, 2), value=math.inf)
    for x in (problem.scores, certain):
        ranks = so.soft_rank(x, method=op.method, temperature=problem.temperature)
        assert_close(op(x, temperature=problem.temperature, at=x), ranks - 0.5)


@binds("fsum")
def sums_go_from_nothing_to_everything(op, problem):
    ends = torch.tensor([math.inf, -math.inf, math.nan], dtype=torch.float64)
    result = op.solve(problem, at=ends)
    expected = torch.tensor([problem.n, 0, math.nan], dtype=torch.float64).expand_as(result)
    assert_close(result, expected)


@binds("fsum_inverse")
def roots_of_sums_are_their_points(op, problem):
    points = problem.scores + 0.1 * problem.temperature.unsqueeze(-1)
    options = {"method": op.method, "temperature": problem.temperature}
    levels = so.fsum(problem.scores, points, **options)
    result = op.solve(problem, at=levels)
    assert_close(result, points, atol=1e-11 * problem.n * _unit(op, problem))


@sums
def what_takes_no_part_is_not_counted(op, problem):
    at = _places(op, problem)
    expected = op.solve(problem, at=at)
    for filling in (_GARBAGE, torch.tensor([-math.inf], dtype=torch.float64)):
        padded, mask = _pad(problem, filling)
        result = op(padded, temperature=problem.temperature, mask=mask, at=at)
        assert_close(result, expected, atol=1e-12 * _unit(op, problem))


@sums
def what_is_certain_is_above_every_point(op, problem):
    at = _places(op, problem)
    scores = torch.nn.functional.pad(problem.scores, (1, 1), value=math.inf)
    result = op(scores, temperature=problem.temperature, at=at)
    assert_close(result, op.solve(problem, at=at), atol=1e-12 * _unit(op, problem))


def _places(op, problem):
    """Points of every row, some of them scores; or levels, strictly between 0 and n."""
    n = problem.n
    if is_value(op):
        return n * torch.rand(len(problem.k), n + 2, generator=problem.generator()).double()
    near = problem.scores + problem.temperature.unsqueeze(-1)
    return torch.cat([near, problem.scores[:, :2], 1 - problem.scores[:, -1:]], -1)


def _unit(op, problem):
    return max(1.0, problem.temperature.max().item()) if is_value(op) else 1.0
