"""Where FSum is asked for: points on the axis of the scores, and levels that it can have."""

from __future__ import annotations

from torch import Tensor

from softorder._check import _tensors, _values
from softorder._check._mode import eager


def points(points: Tensor, scores: Tensor, dim: int) -> None:
    """`points` are of floating dtype, for all rows or for each of them."""
    _tensors.floating("points", points)
    _fits("points", points, scores, dim)


def levels(levels: Tensor, scores: Tensor, dim: int) -> None:
    """`levels` are numbers in [0, n], for all rows or for each of them."""
    _numbers(levels, scores, dim)
    n = scores.shape[dim]
    if eager() and levels.numel():
        wrong = ~((levels >= 0) & (levels <= n))
        message = "levels must be between 0 and {}, the number of scores along dim {}, but got {}"
        _values.refuse(
            "levels", wrong, lambda: message.format(n, dim, _values.first(levels, wrong))
        )


def levels_above(levels: Tensor, scores: Tensor, dim: int) -> None:
    """`levels` are numbers >= 0, whatever a row has."""
    _numbers(levels, scores, dim)
    if eager() and levels.numel():
        wrong = ~(levels >= 0)
        message = "levels must be >= 0, but got {}"
        _values.refuse("levels", wrong, lambda: message.format(_values.first(levels, wrong)))


def _numbers(levels: Tensor, scores: Tensor, dim: int) -> None:
    if not isinstance(levels, Tensor):
        raise TypeError(f"levels must be a tensor, but got {type(levels).__name__}")
    _values.real_numbers("levels", levels)
    _fits("levels", levels, scores, dim)


def _fits(name: str, value: Tensor, scores: Tensor, dim: int) -> None:
    """1-D, or shaped as scores but along dim; the other axes broadcast."""
    _values.reachable(name, value, scores)
    back = dim if dim < 0 else dim - scores.dim()
    rows = _values.without(scores, dim)
    alone = value.dim() == 1
    if not alone and (
        value.dim() < -back or not _values.broadcasts(_values.without(value, back), rows)
    ):
        raise ValueError(
            f"{name} must be 1-D, or have the shape of scores, {tuple(scores.shape)}, but along "
            f"dim {dim}, where any size is allowed, or one that broadcasts to it, "
            f"but got shape {tuple(value.shape)}"
        )
