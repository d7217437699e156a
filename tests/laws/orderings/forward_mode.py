"""Laws of forward-mode derivatives."""

import torch
from torch.autograd import gradcheck
from torch.func import jacfwd, jacrev, jvp

from tests.laws.close import assert_close
from tests.laws.orderings.arguments import as_function, hide_one, leaves


def forward_gradients_match_differences(op, problem):
    function = as_function(op, hide_one(problem))
    assert gradcheck(function, leaves(problem), check_forward_ad=True, check_backward_ad=False)


def forward_mode_agrees_with_backward_mode(op, problem):
    function, arguments = as_function(op), (problem.scores, problem.temperature)
    forward = jacfwd(function, argnums=(0, 1))(*arguments)
    backward = jacrev(function, argnums=(0, 1))(*arguments)
    for one, other in zip(forward, backward, strict=True):
        assert_close(one, other, atol=1e-10)


def jvp_is_the_slope_along_a_direction(op, problem):
    function, arguments = as_function(op), (problem.scores, problem.temperature)
    generator = problem.generator()
    tangents = tuple(torch.randn(v.shape, dtype=v.dtype, generator=generator) for v in arguments)
    value, slope = jvp(function, arguments, tangents)
    assert_close(value, function(*arguments))
    above, below = (
        function(*(v + h * t for v, t in zip(arguments, tangents, strict=True)))
        for h in (1e-6, -1e-6)
    )
    assert_close(slope, (above - below) / 2e-6, atol=1e-5)
