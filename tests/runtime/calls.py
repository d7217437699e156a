"""Public operators as calls with a gradient: every operator by every family of methods."""

import torch

import softorder as so
from tests.runtime.public_operators import OPERATORS, SHAPE

_BY_METHOD = {row.operator for row in so.methods()}
NAMES = [name for name in OPERATORS if name.split(", ")[0] in _BY_METHOD]


def call(name, scores):
    """The result, and the gradient of its squares."""
    x = scores.detach().requires_grad_()
    result = OPERATORS[name](x)
    (gradient,) = torch.autograd.grad(result.square().mean(), x)
    return result.detach(), gradient


def scores(seed, shape=SHAPE):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))
