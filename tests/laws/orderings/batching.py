"""Laws of vmap."""

import torch
from torch.func import grad, vmap

from tests.laws.close import assert_close
from tests.laws.orderings.arguments import as_function


def vmap_is_a_loop_over_rows(op, problem):
    batched = vmap(lambda x, t: op(x, temperature=t))(problem.scores, problem.temperature)
    assert_close(batched, op.solve(problem))


def vmap_takes_any_argument_alone(op, problem):
    x, temperature = problem.scores, problem.temperature
    over_temperature = vmap(lambda t: op(x, temperature=t))(temperature)
    over_scores = vmap(lambda x: op(x, temperature=temperature[0]))(x)
    assert_close(over_scores, op(x, temperature=temperature[0]))
    for row, t in enumerate(temperature):
        assert_close(over_temperature[row], op(x, temperature=t))


def vmap_takes_a_mask(op, problem):
    mask = torch.ones_like(problem.scores, dtype=torch.bool)
    mask[0, -1] = False
    batched = vmap(lambda x, m: op(x, mask=m))(problem.scores, mask)
    assert_close(batched, op(problem.scores, mask=mask))


def vmap_of_a_gradient_is_per_row(op, problem):
    function = as_function(op)

    def loss(x, temperature):
        return function(x, temperature).square().sum()

    arguments = problem.scores, problem.temperature
    per_row = vmap(grad(loss, argnums=(0, 1)))(*arguments)
    together = grad(loss, argnums=(0, 1))(*arguments)
    for one, other in zip(per_row, together, strict=True):
        assert_close(one, other, atol=1e-10)
