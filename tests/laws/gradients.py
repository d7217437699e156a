"""Laws of first derivatives in scores, k and temperature."""

import torch
from torch.autograd import gradcheck
from torch.func import jacrev

from tests.laws.arguments import as_function, hide_one, leaves
from tests.laws.close import assert_close


def gradients_match_differences(op, problem):
    for mask in (None, hide_one(problem)):
        assert gradcheck(as_function(op, mask), leaves(problem), check_batched_grad=True)


def mass_moves_as_k_says(op, problem):
    by_score, by_k, by_temperature = jacrev(as_function(op), argnums=(0, 1, 2))(*problem.arguments)
    assert_close(by_score.sum(1), torch.zeros_like(by_score.sum(1)), atol=1e-11)
    assert_close(by_k.sum(1), torch.eye(len(problem.k), dtype=by_k.dtype), atol=1e-11)
    assert_close(by_temperature.sum(1), torch.zeros_like(by_k.sum(1)), atol=1e-11)


def gradients_stay_finite_when_cold(op, problem):
    for temperature in (1e-3, 1e-9, 1e-30, 1e-300):
        scores, k = leaves(problem)[:2]
        heat = torch.full_like(k, temperature).requires_grad_()
        p = op(scores, k, temperature=heat)
        upstream = torch.randn(p.shape, dtype=p.dtype, generator=problem.generator())
        gradients = torch.autograd.grad(p, (scores, k), upstream)
        assert all(g.isfinite().all() for g in gradients), (temperature, gradients)
