"""The methods of the k-hot paper's tables: estimators and designs of the library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

import softorder as so

Loss = Callable[[Tensor], Tensor]


class Method(NamedTuple):
    """An estimator and what it draws from. All temperatures are 1."""

    estimator: str | Callable[..., Tensor]
    design: str | None  #: None for one that keeps the probabilities, see `options`
    density: str | None = None


def sequential_softmax(
    law: so.distributions.KHot, loss: Loss | None = None, sample_shape: Sequence[int] = ()
) -> Tensor:
    """Xie & Ermon (2019): perturb with Gumbel noise, relax by k softmaxes. The value is the hard
    top-k, the gradient that of the relaxed one, as for Gumbel-σk."""
    keys = law.perturbed(sample_shape)
    soft = so.soft_topk(keys, law.k, method="sequential_softmax")
    return _through(law.hard(keys), soft, loss)


def conditional_poisson_network(
    law: so.distributions.KHot, loss: Loss | None = None, sample_shape: Sequence[int] = ()
) -> Tensor:
    """NCPSS (Pervez et al. 2023): draw by iterative Poisson sampling; the gradient goes straight
    through to the sigmoids of the logits, rescaled to the sum k."""
    soft = so.soft_topk(law.logits, law.k, method="renormalized_sigmoid")
    probs = torch.sigmoid(law.logits.detach())
    wide = probs.expand(*sample_shape, *probs.shape)
    return _through(iterative_poisson(wide, law.k), soft, loss)


def iterative_poisson(probs: Tensor, k: float | Tensor, rounds: int = 7) -> Tensor:
    """Nearly k ones in every row: an independent draw of every unit, put right again and again.

    With m too few ones, each zero becomes a one with a probability that grows with its own and sums
    to m; with m too many, each one a zero, by the opposite probabilities. A row that has k ones is
    left alone, one that has not found them after all rounds stays as it is.
    """
    x = torch.zeros_like(probs)
    for _ in range(rounds):
        missing = k - x.sum(-1, keepdim=True)
        if not missing.any():
            break
        few = missing > 0
        open_to_change = torch.where(few, 1 - x, x)
        leaning = torch.where(few, probs, 1 - probs)
        change = torch.bernoulli(rescaled(leaning, open_to_change, missing.abs()))
        x = (x - change).abs()
    return x


def rescaled(probs: Tensor, among: Tensor, size: float | Tensor) -> Tensor:
    """Probabilities with the sum `size` over the units `among`, 0 for the others:

    p m/s  if m <= s,  else  1 - (1 - p)(n - m)/(n - s)      m the size, n units with Σ p = s
    """
    n, total = among.sum(-1, keepdim=True), (probs * among).sum(-1, keepdim=True)
    least = torch.finfo(probs.dtype).tiny
    less = probs * (size / total.clamp_min(least))
    more = 1 - (1 - probs) * ((n - size) / (n - total).clamp_min(least))
    return torch.where(size <= total, less, more).clamp(0, 1) * among


def _through(draw: Tensor, soft: Tensor, loss: Loss | None) -> Tensor:
    """The value of the draw, the gradient of `soft`."""
    carrier = draw + (soft - soft.detach())
    return carrier if loss is None else loss(carrier)


_relaxed = partial(so.estimators.relaxed, hard=True)

METHODS = {
    "Xie & Ermon": Method(sequential_softmax, "gumbel_topk"),
    "NCPSS": Method(conditional_poisson_network, "poisson"),
    "SIMPLE": Method("simple", "conditional_poisson"),
    "πST": Method("straight_through", None),
    "πST2": Method("second_order", None),
    "Gumbel-σk": Method(_relaxed, "gumbel_topk"),
    "πST, laplace": Method("straight_through", None, "laplace"),
    "Gumbel-σk, laplace": Method(_relaxed, "gumbel_topk", "laplace"),
}


def options(name: str, n: int) -> dict[str, Any]:
    """Arguments of `so.nn.KHotGate` and `so.nn.KHotHead`.

    πST and πST2 want draws that keep the probabilities. Of many units Pareto sampling does, to
    about 1e-3 at most, and is as fast as a top-k; of few it may be off by more than 0.01, so there
    the draws are pivotal, which is exact.
    """
    method = METHODS[name]
    exact = "pareto" if n >= 100 else "pivotal"
    return method._replace(design=method.design or exact)._asdict()
