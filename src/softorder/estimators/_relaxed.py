from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder.distributions import KHot
from softorder.estimators._base import Loss, register, result, through


@register
def relaxed(
    law: KHot,
    loss: Loss | None = None,
    sample_shape: Sequence[int] = (),
    *,
    temperature: float | Tensor = 1.0,
    hard: bool = False,
    method: str | object | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Relaxed draws, `so.soft_topk((θ + noise)/τ, k)`, differentiated through the noise.

    Algorithm 3 of the k-hot paper for the design "gumbel_topk"; with logistic noise, the relaxation
    of Pareto sampling, for the other designs. The gradient is right for the relaxed loss, which as
    τ → 0 becomes the loss of these draws, while its variance grows.

    With another `method` of `so.soft_topk` the same keys are relaxed in another way. The relaxed
    subset sampling of Xie & Ermon (2019) is method="sequential_softmax" with the design
    "gumbel_topk": with r = θ + Gumbel noise, Σ_{j≤k} a_j, a_j = softmax(α_j/τ), α_1 = r,
    α_{j+1} = α_j + log(1 - a_j). What it breaks: relaxed draws sum to k, but may exceed 1.

    Args:
        law: what is relaxed; any density.
        loss: None for the draws, or a function of them.
        sample_shape: how many draws; these axes come first.
        temperature: τ > 0.
        hard: the value is the hard top-k of the same noise, the gradient that of the relaxed draw.
        method: how keys are relaxed: a method of `so.soft_topk`, or None for the law's density.
        generator: of random numbers.

    >>> import torch, softorder as so
    >>> law = so.distributions.KHot(2, logits=torch.randn(5), design="gumbel_topk")
    >>> x = so.estimators.relaxed(law, temperature=0.5, hard=True)
    >>> x.sum(), x.unique()
    (tensor(2.), tensor([0., 1.]))
    """
    _check.flag("hard", hard)
    keys = law.perturbed(sample_shape, generator)
    soft = law.relaxed(keys, temperature, method)
    if hard:
        return through(law.hard(keys), soft, loss)
    return result(soft, loss)
