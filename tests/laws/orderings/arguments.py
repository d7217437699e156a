"""The arguments of a problem as derivatives want them."""

import torch


def as_function(op, mask=None):
    def function(scores, temperature):
        result = op(scores, temperature=temperature, mask=mask)
        return torch.where(result.isfinite(), result, 0.0)  # what is padded, or impossible

    return function


def leaves(problem):
    return tuple(v.clone().requires_grad_() for v in (problem.scores, problem.temperature))


def hide_one(problem):
    """Hides the smallest element of every row that has two."""
    mask = torch.ones_like(problem.scores, dtype=torch.bool)
    if problem.n > 1:
        mask.scatter_(-1, problem.scores.argmin(-1, keepdim=True), False)
    return mask
