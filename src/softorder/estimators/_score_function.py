from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from softorder import _check
from softorder.distributions import KHot
from softorder.estimators._base import Loss, register


@register
def score_function(
    law: KHot,
    loss: Loss | None = None,
    sample_shape: Sequence[int] = (),
    *,
    baseline: bool = True,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The unbiased estimate (f(x_j) - b_j) ∇ log P(x_j), for losses without any gradient in x.

    The baseline b_j is the mean loss of the other draws of the row, so that it is independent of
    x_j and the estimate stays unbiased; with a single draw there is none. Also known as REINFORCE
    with a leave-one-out baseline. What the loss itself has of gradients, in other parameters, is
    kept.

    Args:
        law: what is sampled, with a design that has log_prob (`so.sampling.designs()`).
        loss: a function of the draws that returns one number for each draw and row.
        sample_shape: how many draws; these axes come first. The mean over them is the estimate.
        baseline: False leaves it out, for comparison.
        generator: of random numbers.

    >>> import torch, softorder as so
    >>> theta = torch.zeros(4, requires_grad=True)
    >>> law = so.distributions.KHot(2, logits=theta)
    >>> losses = so.estimators.score_function(law, lambda x: x[..., 0], (10_000,))
    >>> (gradient,) = torch.autograd.grad(losses.mean(), theta)
    >>> torch.allclose(gradient, torch.tensor([0.25, -1 / 12, -1 / 12, -1 / 12]), atol=0.03)
    True
    """
    _check.estimators.needs_loss("score_function", loss)
    _check.flag("baseline", baseline)
    assert loss is not None
    x = law.sample(sample_shape, generator)
    losses = loss(x)
    _check.estimators.losses(losses, x.shape[:-1])
    score = law.log_prob(x)
    surplus = losses.detach()
    draws = prod(sample_shape)
    if baseline and draws > 1:
        axes = tuple(range(len(sample_shape)))
        # f_j - (Σ f - f_j)/(m - 1) = (f_j - mean) m/(m - 1)
        surplus = (surplus - surplus.mean(axes, keepdim=True)) * (draws / (draws - 1))
    return losses + surplus * (score - score.detach())
