"""The methods of the k-hot paper's tables: estimators and designs of the library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from torch import Tensor

import softorder as so


class Method(NamedTuple):
    """Arguments of `so.nn.KHotGate` and `so.nn.KHotHead`. All temperatures are 1."""

    estimator: str | Callable[..., Tensor]
    design: str
    density: str | None = None


def sequential_softmax(
    law: so.distributions.KHot, loss: None = None, sample_shape: tuple[int, ...] = ()
) -> Tensor:
    """Xie & Ermon (2019): perturb with Gumbel noise, relax by k softmaxes. The value is the hard
    top-k, the gradient that of the relaxed one, as for Gumbel-σk."""
    keys = law.perturbed(sample_shape)
    soft = so.soft_topk(keys, law.k, method="sequential_softmax")
    return law.hard(keys) + (soft - soft.detach())


_relaxed = partial(so.estimators.relaxed, hard=True)

METHODS = {
    "Xie & Ermon": Method(sequential_softmax, "gumbel_topk"),
    "SIMPLE": Method("simple", "conditional_poisson"),
    "πST": Method("straight_through", "pivotal"),
    "πST2": Method("second_order", "pivotal"),
    "Gumbel-σk": Method(_relaxed, "gumbel_topk"),
    "πST, laplace": Method("straight_through", "pivotal", "laplace"),
    "Gumbel-σk, laplace": Method(_relaxed, "gumbel_topk", "laplace"),
}
