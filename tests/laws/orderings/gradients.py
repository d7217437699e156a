"""Laws of first derivatives in scores and temperature."""

import torch
from torch.autograd import gradcheck
from torch.func import jacrev

from tests.laws.close import assert_close
from tests.laws.orderings.arguments import as_function, hide_one, leaves
from tests.laws.orderings.binding import binds, orderings, orderings_and_sums
from tests.laws.orderings.operators import is_value


def gradients_match_differences(op, problem):
    for mask in (None, hide_one(problem)):
        assert gradcheck(as_function(op, mask), leaves(problem), check_batched_grad=True)


@orderings
def a_common_shift_moves_values_only(op, problem):
    by_score = jacrev(as_function(op))(problem.scores, problem.temperature)
    moved = by_score.sum((-1, -2))
    assert_close(moved, torch.full_like(moved, float(is_value(op))), atol=1e-10)


@binds("soft_sort", "soft_quantile", "fsum_inverse")
def values_are_homogeneous(op, problem):
    """Euler: Σ x ∂t/∂x + τ ∂t/∂τ = t."""
    x, temperature = problem.scores, problem.temperature
    by_score, by_temperature = jacrev(as_function(op), argnums=(0, 1))(x, temperature)
    total = (by_score * x).sum((-1, -2)) + (by_temperature * temperature).sum(-1)
    assert_close(total, op.solve(problem), atol=1e-10)


@orderings_and_sums
def gradients_stay_finite_when_cold(op, problem):
    for heat in (1e-3, 1e-9, 1e-30, 1e-150):
        scores = problem.scores.clone().requires_grad_()
        result = op(scores, temperature=torch.full_like(problem.temperature, heat))
        upstream = torch.randn(result.shape, dtype=result.dtype, generator=problem.generator())
        (gradient,) = torch.autograd.grad(result, scores, upstream)
        assert gradient.isfinite().all(), (heat, gradient)
