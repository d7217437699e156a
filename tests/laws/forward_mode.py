"""Laws of forward-mode derivatives."""

import torch
from torch.autograd import gradcheck
from torch.func import jacfwd, jacrev, jvp

from tests.laws.arguments import as_function, hide_one, leaves
from tests.laws.close import assert_close


def forward_gradients_match_differences(op, problem):
    for mask in (None, hide_one(problem)):
        assert gradcheck(
            as_function(op, mask), leaves(problem), check_forward_ad=True, check_backward_ad=False
        )


def forward_mode_agrees_with_backward_mode(op, problem):
    function = as_function(op)
    forward = jacfwd(function, argnums=(0, 1, 2))(*problem.arguments)
    backward = jacrev(function, argnums=(0, 1, 2))(*problem.arguments)
    for one, other in zip(forward, backward, strict=True):
        assert_close(one, other, atol=1e-11)


def jvp_is_the_slope_along_a_direction(op, problem):
    function = as_function(op)
    generator = problem.generator()
    tangents = tuple(
        torch.randn(v.shape, dtype=v.dtype, generator=generator) for v in problem.arguments
    )
    value, slope = jvp(function, problem.arguments, tangents)
    assert_close(value, function(*problem.arguments))
    above, below = (
        function(*(v + h * t for v, t in zip(problem.arguments, tangents, strict=True)))
        for h in (1e-6, -1e-6)
    )
    assert_close(slope, (above - below) / 2e-6, atol=1e-6)
