from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder.distributions import KHot
from softorder.estimators._base import Loss, register, through
from softorder.ops import soft_topk

_rescaled = "renormalized_sigmoid"


@register
def iterative_poisson(
    law: KHot,
    loss: Loss | None = None,
    sample_shape: Sequence[int] = (),
    *,
    rounds: int = 7,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Independent draws, put right again and again; a baseline, with the gradient of its sigmoids.

    NCPSS (Pervez et al. 2023), as far as its authors' public code tells. With σ_k(θ) the sigmoids
    of θ, rescaled to the sum k, that is `so.soft_topk(θ, k, method="renormalized_sigmoid")`, it
    starts with x = 0, and a round draws every change by itself:

        Σ x < k:  each zero becomes a one, with the probability σ_m(θ) among the zeros, m = k - Σ x
        Σ x > k:  each one becomes a zero, with σ_m(-θ) among the ones, m = Σ x - k

    The gradient is dx := dσ_k(θ), straight through; that the authors do so is our guess.

    What it breaks: a draw does not always have k ones, since a round meets m on average alone, and
    the mean of the draws is neither σ_k(θ) nor known in closed form. The draws are not those of the
    law, whose design and density do not matter here; its logits and k do.

    Args:
        law: its logits, and a k that is whole.
        loss: None for the draws, or a function of them.
        sample_shape: how many draws; these axes come first.
        rounds: how many there are at most; what has k ones stays as it is.
        generator: of random numbers.

    >>> import torch, softorder as so
    >>> law = so.distributions.KHot(4, logits=torch.zeros(8))
    >>> draw = torch.Generator().manual_seed(0)
    >>> x = so.estimators.iterative_poisson(law, sample_shape=(1000,), rounds=2, generator=draw)
    >>> x.sum(-1).unique()
    tensor([1., 2., 3., 4., 5., 6., 7., 8.])
    """
    _check.count("rounds", rounds, least=1)
    _check.shape("sample_shape", sample_shape)
    logits = law.logits
    k = law.probs.detach().sum(-1, dtype=torch.float64) if law.k is None else law.k
    _check.whole("k", k, "for the estimator iterative_poisson")
    k = torch.minimum(k.detach(), (logits > -torch.inf).sum(-1))
    soft = soft_topk(logits, k, method=_rescaled)
    wide = logits.detach().expand(*sample_shape, *logits.shape)
    wide = wide if wide.dtype == torch.float64 else wide.float()
    x = _draw(wide, k.expand(wide.shape[:-1]), rounds, generator)
    return through(x.to(soft.dtype), soft, loss)


def _draw(theta: Tensor, k: Tensor, rounds: int, generator: torch.Generator | None) -> Tensor:
    x = torch.zeros_like(theta)
    for _ in range(rounds):
        missing = k - x.sum(-1)
        if _check.at_hand(missing) and not missing.any():
            break
        few = (missing > 0).unsqueeze(-1)
        leaning = torch.where(few, theta, -theta)
        among = torch.where((x == 0) == few, leaning, -torch.inf)
        chances = soft_topk(among, missing.abs(), method=_rescaled)
        x = (x - torch.bernoulli(chances.clamp(0, 1), generator=generator)).abs()
    return x
