"""What rank, sort, permutation and quantile do with their arguments, once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor

from softorder import _axis, _check


def usual(
    scores: Tensor, temperature: object, dim: object, descending: object, mask: object
) -> bool:
    """Whether they are right at a glance."""
    return type(descending) is bool and _check.usual(scores, dim, temperature, mask)


def check(
    scores: Tensor, temperature: float | Tensor, dim: int, descending: bool, mask: Tensor | None
) -> None:
    """The arguments that they share."""
    _check.scores(scores, dim)
    _check.temperature(temperature, scores, dim)
    _check.flag("descending", descending)
    _check.mask(mask, scores)


def rows(scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
    """Scores on the last axis; what takes no part is at -inf, in both directions."""
    return _axis.rows(scores, dim, largest=True, mask=mask)


def along(
    compute: Callable[..., Tensor],
    scores: Tensor,
    temperature: Any,
    dim: Any,
    descending: bool,
    mask: Tensor | None,
) -> Tensor:
    """A result for every score, at the score's place."""
    x = rows(scores, dim, mask)
    if x.shape[-1] == 0:
        return scores.clone()
    result = compute(x, _axis.per_row(temperature, x, dim), descending)
    return _axis.back(result, scores, dim)


def at_levels(
    compute: Callable[..., Tensor], x: Tensor, levels: Tensor, temperature: float | Tensor, dim: int
) -> Tensor:
    """A result for every level of every row, NaN where there are no scores."""
    if x.shape[-1] == 0:
        nothing = x.sum(-1, keepdim=True) * math.nan  # part of the graph
        return nothing.expand(*x.shape[:-1], levels.shape[-1])
    return compute(x, levels, _axis.per_row(temperature, x, dim))
