from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.distributions import KHot
from softorder.estimators._base import Loss, register, through, whole_size
from softorder.sampling import ConditionalPoisson


@register
def simple(
    law: KHot,
    loss: Loss | None = None,
    sample_shape: Sequence[int] = (),
    *,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draws with the gradient of the exact marginals of P(x) ∝ e^<θ,x>: dx := Cov(x) dθ.

    SIMPLE (Ahmed et al. 2023). For the design "conditional_poisson" with logits this is what is
    sampled, and the same as `straight_through`; for other designs only the gradient is that of the
    conditional Poisson law with the same logits.

    Args:
        law: what is sampled; k must be whole.
        loss: None for the draws, or a function of them.
        sample_shape: how many draws; these axes come first.
        generator: of random numbers.

    >>> import torch, softorder as so
    >>> theta = torch.zeros(4, requires_grad=True)
    >>> x = so.estimators.simple(so.distributions.KHot(2, logits=theta))
    >>> torch.autograd.grad(x[0], theta)
    (tensor([ 0.2500, -0.0833, -0.0833, -0.0833]),)
    """
    x = law.sample(sample_shape, generator)
    marginals = ConditionalPoisson(law.logits, whole_size(law, "simple")).inclusion()
    return through(x, marginals.to(x.dtype), loss)
