"""Laws of second derivatives."""

import torch
from torch.autograd import gradgradcheck
from torch.func import hessian, jacrev

from tests.laws.close import assert_close
from tests.laws.orderings.arguments import as_function, hide_one, leaves


def second_gradients_match_differences(op, problem):
    mask = hide_one(problem) if problem.seed % 2 else None
    assert gradgradcheck(as_function(op, mask), leaves(problem), check_fwd_over_rev=True)


def hessian_does_not_depend_on_the_mode(op, problem):
    function, weights = as_function(op), torch.randn(1, generator=problem.generator())

    def loss(x):
        result = function(x, problem.temperature[0])
        return (result * result * weights).sum()

    x = problem.scores[0]
    assert_close(hessian(loss)(x), jacrev(jacrev(loss))(x), atol=1e-9)
