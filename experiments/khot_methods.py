"""The methods of the k-hot paper's tables: estimators and designs of the library."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from torch import Tensor

import softorder as so


class Method(NamedTuple):
    """An estimator and what it draws from. All temperatures are 1."""

    estimator: str | Callable[..., Tensor]
    design: str
    method: str | None = None  # of the density


_relaxed = partial(so.estimators.relaxed, hard=True)

METHODS = {
    "Xie & Ermon": Method(partial(_relaxed, method="sequential_softmax"), "gumbel_topk"),
    "NCPSS": Method("iterative_poisson", "poisson"),
    "SIMPLE": Method("simple", "conditional_poisson"),
    "πST": Method("straight_through", "pareto_corrected"),
    "πST2": Method("second_order", "pareto_corrected"),
    "Gumbel-σk": Method(_relaxed, "gumbel_topk"),
    "πST, laplace": Method("straight_through", "pareto_corrected", "laplace"),
    "Gumbel-σk, laplace": Method(_relaxed, "gumbel_topk", "laplace"),
}


def options(name: str) -> dict[str, Any]:
    """Arguments of `so.nn.KHotGate` and `so.nn.KHotHead`.

    πST and πST2 want draws that keep the probabilities. "pareto_corrected" does, up to O(V^-4) with
    V = Σ π(1-π), and is as fast as a top-k. In the worst rows that a search has found it is off by
    3e-5 for V > 5, by 4e-3 for V > 1, and by 0.012 at any V.
    """
    return METHODS[name]._asdict()
