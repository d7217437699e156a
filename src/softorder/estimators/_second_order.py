from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.distributions import KHot
from softorder.estimators._base import Loss, register, through


@register
def second_order(
    law: KHot,
    loss: Loss | None = None,
    sample_shape: Sequence[int] = (),
    *,
    temperature: float = 1.0,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Straight-through at two points: at the probabilities, and halfway between them and the draw.

    Algorithm 5 of the k-hot paper, ReinMax (Liu et al. 2023) for k-hot vectors. With J(π) the
    Jacobian of the relaxation where its value is π,

        dx := 2 J((x + π_τ)/2) dθ - ½ J(π) dθ        π = π(θ), π_τ = π(θ/τ)

    Args:
        law: what is sampled. Its density gives J, also where the design has logits of its own.
        loss: None for the draws, or a function of them.
        sample_shape: how many draws; these axes come first.
        temperature: τ; 1 is what the derivation asks for, larger ones trade bias for variance.
        generator: of random numbers.

    >>> import torch, softorder as so
    >>> theta = torch.zeros(4, requires_grad=True)
    >>> law = so.distributions.KHot(2, logits=theta, design="sampford")
    >>> so.estimators.second_order(law, lambda x: x.square().sum(-1))
    tensor(2., grad_fn=<SumBackward1>)
    """
    x = law.sample(sample_shape, generator)
    theta, relaxation = law.logits, law.relaxation
    with torch.no_grad():
        halfway = (x + law.relaxed(theta, temperature)) / 2
        there = relaxation.logits(halfway)
    moved = relaxation.probs(there + (theta - theta.detach()))
    return through(x, 2 * moved - law.probs / 2, loss)
