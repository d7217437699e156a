"""Laws of vmap."""

import torch
from torch.func import grad, vmap

from tests.laws.close import assert_close


def vmap_is_a_loop_over_rows(op, problem):
    def one(x, k, temperature):
        return op(x, k, temperature=temperature)

    batched = vmap(one)(*problem.arguments)
    assert_close(batched, problem.solve(op))


def vmap_takes_any_argument_alone(op, problem):
    x, k, temperature = problem.scores, problem.k[0], problem.temperature[0]
    over_k = vmap(lambda k: op(x, k, temperature=temperature))(problem.k)
    over_temperature = vmap(lambda t: op(x, k, temperature=t))(problem.temperature)
    for row in range(len(problem.k)):
        assert_close(over_k[row], op(x, problem.k[row], temperature=temperature))
        assert_close(over_temperature[row], op(x, k, temperature=problem.temperature[row]))


def vmap_takes_a_mask(op, problem):
    mask = torch.ones_like(problem.scores, dtype=torch.bool)
    mask[0, -1] = False
    k = problem.k * (problem.n - 1) / problem.n
    batched = vmap(lambda x, k, m: op(x, k, mask=m))(problem.scores, k, mask)
    assert_close(batched, op(problem.scores, k, mask=mask))


def vmap_of_a_gradient_is_per_row(op, problem):
    weights = torch.arange(problem.n, dtype=torch.float64)

    def loss(x, k, temperature):
        return (op(x, k, temperature=temperature) * weights).sum()

    per_row = vmap(grad(loss, argnums=(0, 1, 2)))(*problem.arguments)
    together = grad(loss, argnums=(0, 1, 2))(*problem.arguments)
    for one, other in zip(per_row, together, strict=True):
        assert_close(one, other, atol=1e-11)
