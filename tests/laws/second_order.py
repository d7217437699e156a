"""Laws of second derivatives."""

import torch
from torch.autograd import gradgradcheck
from torch.func import hessian, jacrev

from tests.laws.arguments import as_function, hide_one, leaves
from tests.laws.close import assert_close


def second_gradients_match_differences(op, problem):
    for mask in (None, hide_one(problem)):
        assert gradgradcheck(as_function(op, mask), leaves(problem), check_fwd_over_rev=True)


def hessian_is_the_slope_of_the_gradient(op, problem):
    x, k, temperature = (v[0] for v in problem.arguments)
    weights = torch.arange(problem.n, dtype=x.dtype)

    def loss(x):
        return op(x, k, temperature=temperature) @ weights

    steps = 1e-6 * torch.eye(problem.n, dtype=x.dtype)
    slopes = [(jacrev(loss)(x + h) - jacrev(loss)(x - h)) / 2e-6 for h in steps]
    assert_close(hessian(loss)(x), torch.stack(slopes), atol=1e-6)
    assert_close(hessian(loss)(x), jacrev(jacrev(loss))(x), atol=1e-10)
