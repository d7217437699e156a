from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.distributions import KHot
from softorder.estimators._base import Loss, register, through


@register
def straight_through(
    law: KHot,
    loss: Loss | None = None,
    sample_shape: Sequence[int] = (),
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draws whose gradient goes straight through to their probabilities: dx := dπ.

    Algorithms 1 and 2 of the k-hot paper. Where the design is exact, the mean of this gradient is
    E[∇f(x)] dE[x]/dθ, a first-order approximation of the true one (Proposition 3): exact for losses
    that are linear between the subsets and given so, biased otherwise.

    Args:
        law: what is sampled; any design, any density.
        loss: None for the draws, or a function of them.
        sample_shape: how many draws; these axes come first.
        generator: of random numbers.

    >>> import torch, softorder as so
    >>> theta = torch.zeros(4, requires_grad=True)
    >>> x = so.estimators.straight_through(so.distributions.KHot(2, logits=theta, design="pareto"))
    >>> x.sum()
    tensor(2., grad_fn=<SumBackward0>)
    """
    return through(law.sample(sample_shape, generator), law.probs, loss)
