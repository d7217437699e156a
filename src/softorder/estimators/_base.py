"""What estimators share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from softorder import _check
from softorder.distributions import KHot

Loss = Callable[[Tensor], Tensor]
Estimator = Callable[..., Tensor]

_registry: dict[str, Estimator] = {}


def register(estimator: Estimator) -> Estimator:
    """Makes an estimator known by its name."""
    _registry[estimator.__name__] = estimator
    return estimator


def find(name: str) -> Estimator:
    """The estimator of that name.

    Args:
        name: that of a function of `so.estimators`.

    >>> import softorder as so
    >>> so.estimators.find("simple") is so.estimators.simple
    True
    """
    _check.choice("estimator", name, sorted(_registry))
    return _registry[name]


def whole_size(law: KHot, estimator: str) -> Tensor:
    """k of every row, which must be whole."""
    k = law.probs.detach().sum(-1, dtype=torch.float64) if law.k is None else law.k
    _check.whole("k", k, f"for the estimator {estimator}")
    return k.long()


def through(draw: Tensor, probs: Tensor, loss: Loss | None) -> Tensor:
    """The draw with the derivatives of `probs`, or its loss; the value is that of the draw."""
    return result(draw + (probs - probs.detach()), loss)


def result(draw: Tensor, loss: Loss | None) -> Tensor:
    """What an estimator returns: the draw, or its loss."""
    _check.estimators.loss(loss)
    return draw if loss is None else loss(draw)
