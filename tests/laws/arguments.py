"""The arguments of a problem as derivatives want them."""

import torch


def as_function(op, mask=None):
    def function(scores, k, temperature):
        return op(scores, k, temperature=temperature, mask=mask)

    return function


def leaves(problem):
    return tuple(v.clone().requires_grad_() for v in problem.arguments)


def hide_one(problem):
    """Hides one element of every row that can spare one."""
    mask = torch.ones_like(problem.scores, dtype=torch.bool)
    spare = (problem.k < problem.n - 1.2).nonzero()
    mask[spare, problem.scores[spare].argmin(-1)] = False
    return mask
