"""Tensors: their dtype, their axes, and the entries they may hold."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder._check import _kinds, _values
from softorder._check._mode import PLAIN, eager
from softorder._check._options import at_least
from softorder._check._values import FLOATING, PerRow, first, refuse

_STRIDED = torch.strided


def scores(scores: Tensor, dim: int) -> None:
    """`scores` is a floating-point tensor with at least one axis, and `dim` is one of them."""
    usual = type(scores) in PLAIN and scores.dtype in FLOATING and scores.layout is _STRIDED
    if usual and type(dim) is int and -scores.dim() <= dim < scores.dim() and not scores.is_nested:
        return  # what happens most, in one call
    floating("scores", scores)
    axes = scores.dim()
    if type(dim) is not int:
        raise TypeError(f"dim must be an int, but got {type(dim).__name__}")
    if not -axes <= dim < axes:
        shape = tuple(scores.shape)
        raise ValueError(
            f"dim must be between {-axes} and {axes - 1} for scores of shape {shape}, but got {dim}"
        )


def usual(scores: Tensor, dim: object, temperature: object, mask: object, k: object = 0.0) -> bool:
    """Whether these are right at a glance, the rows not empty: what happens most, in one call.

    Plain scores and numbers in their ranges, without a mask. All else is for the functions that
    say what is wrong.
    """
    return (
        mask is None
        and type(dim) is int
        and type(temperature) is float
        and (type(k) is int or type(k) is float)
        and type(scores) in PLAIN
        and scores.dtype in FLOATING
        and scores.layout is _STRIDED
        and not scores.is_nested
        and -scores.dim() <= dim < scores.dim()
        and (n := scores.shape[dim]) > 0
        and 0 <= k <= n
        and 0 < temperature < math.inf
    )


def not_empty(scores: Tensor, dim: int) -> None:
    """There is something along dim to choose from."""
    if scores.shape[dim] == 0:
        raise ValueError(
            f"scores must have at least one entry along dim {dim}, but got shape "
            f"{tuple(scores.shape)}"
        )


def companions(values: Tensor, scores: Tensor) -> None:
    """`values` are of floating dtype, with the shape of scores and perhaps further axes behind."""
    floating("values", values)
    _values.beside("values", values, scores)
    if values.shape[: scores.dim()] != scores.shape:
        raise ValueError(
            f"values must have the shape of scores, {tuple(scores.shape)}, or further axes behind "
            f"it, but got shape {tuple(values.shape)}"
        )


def several(dim: object, axes: int) -> None:
    """`dim` is an axis, several different ones, or None."""
    if dim is None:
        return
    each = dim if isinstance(dim, (tuple, list)) else (dim,)
    if any(type(axis) is not int for axis in each):
        wrong = next(type(axis).__name__ for axis in each if type(axis) is not int)
        raise TypeError(f"dim must be an int, a tuple of ints or None, but got {wrong}")
    outside = [axis for axis in each if not -axes <= axis < axes]
    if outside or not each or len({axis % axes for axis in each}) < len(each):
        raise ValueError(
            f"dim must name different axes between {-axes} and {axes - 1}, but got {dim!r}"
        )


def mask(mask: Tensor | None, scores: Tensor) -> None:
    """`mask` is None, or a boolean tensor beside `scores` that broadcasts to them."""
    if mask is not None:
        _boolean(mask)
        _kinds.dense("mask", mask)
        _values.beside("mask", mask, scores)
        _broadcasts(mask, scores)


def any_mask(mask: Tensor, scores: Tensor) -> None:
    """The same of a tensor of any kind."""
    _boolean(mask)
    _broadcasts(mask, scores)


def _boolean(mask: Tensor) -> None:
    if not isinstance(mask, Tensor):
        raise TypeError(f"mask must be a tensor of dtype bool, but got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be a tensor of dtype bool, but got {_values.dtype(mask)}")


def _broadcasts(mask: Tensor, scores: Tensor) -> None:
    if mask.shape != scores.shape and not _values.broadcasts(mask.shape, scores.shape):
        raise ValueError(
            f"mask must broadcast to the shape of scores, {tuple(scores.shape)}, "
            f"but got shape {tuple(mask.shape)}"
        )


def floating(name: str, value: Tensor) -> None:
    """A tensor of floating dtype with at least one axis."""
    floating_dtype(name, value)
    if value.layout is not _STRIDED or value.is_nested or type(value) not in PLAIN:
        _kinds.dense(name, value)
    if value.dim() == 0:
        raise ValueError(f"{name} must have at least one axis, but got a tensor of shape ()")


def floating_dtype(name: str, value: Tensor) -> None:
    """A tensor of floating dtype, of any kind."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but got {type(value).__name__}")
    if value.dtype not in FLOATING:
        allowed = ", ".join(str(dtype).removeprefix("torch.") for dtype in FLOATING)
        raise TypeError(
            f"{name} must have one of the dtypes {allowed}, but got {_values.dtype(value)}"
        )


def same_shape(name: str, value: Tensor, scores: Tensor) -> None:
    """A tensor with the shape of scores, of any kind."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but got {type(value).__name__}")
    if value.shape != scores.shape:
        raise ValueError(
            f"{name} must have the shape of scores, {tuple(scores.shape)}, but got shape "
            f"{tuple(value.shape)}"
        )


def with_axes(name: str, value: Tensor, axes: int) -> None:
    """A tensor of floating dtype with at least so many axes."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor, but got {type(value).__name__}")
    if not value.dtype.is_floating_point:
        raise TypeError(f"{name} must have a floating dtype, but got {_values.dtype(value)}")
    _kinds.dense(name, value)
    if value.dim() < axes:
        raise ValueError(f"{name} must have at least {axes} axes, but got {tuple(value.shape)}")


def scale(scale: PerRow, scores: Tensor) -> None:
    """`scale` is a finite number >= 0, or a tensor of them that broadcasts to scores."""
    if not isinstance(scale, Tensor):
        return at_least("scale", scale, 0)
    _values.real_numbers("scale", scale)
    if not _values.broadcasts(scale.shape, scores.shape):
        raise ValueError(
            f"scale must broadcast to the shape of scores, {tuple(scores.shape)}, "
            f"but got shape {tuple(scale.shape)}"
        )
    wrong = ~((scale >= 0) & scale.isfinite())
    if eager():
        message = "scale must be finite and >= 0, but got {}"
        refuse("scale", wrong, lambda: message.format(first(scale, wrong)))


def square(name: str, value: Tensor) -> None:
    """A tensor of floating dtype that holds square matrices."""
    floating(name, value)
    if value.dim() < 2 or value.shape[-1] != value.shape[-2]:
        raise ValueError(
            f"{name} must be square matrices, (..., n, n), but got shape {tuple(value.shape)}"
        )


def points(name: str, value: Tensor, sources: Tensor, size: int | None = None) -> None:
    """Points on the last axis, in the dtype of `sources`; so many of them if size is given."""
    if not isinstance(value, Tensor) or not value.dtype.is_floating_point:
        given = value.dtype if isinstance(value, Tensor) else type(value).__name__
        raise TypeError(f"{name} must be a floating-point tensor, but got {given}")
    if value.dtype != sources.dtype:
        raise TypeError(
            f"{name} must have the dtype of sources, {sources.dtype}, but got {value.dtype}"
        )
    _kinds.dense(name, value)
    _values.beside(name, value, sources, "sources")
    if value.dim() == 0 or size not in (None, value.shape[-1]):
        wanted = "at least one axis" if size is None else f"{size} entries on its last axis"
        raise ValueError(f"{name} must have {wanted}, but got shape {tuple(value.shape)}")


def integers(name: str, value: Tensor) -> None:
    """A tensor of integers."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name} must be a tensor of integers, but got {type(value).__name__}")
    if value.dtype.is_floating_point:
        raise TypeError(f"{name} must hold integers, but got a tensor of {_values.dtype(value)}")
    _values.real_numbers(name, value, "integers")


def whole(name: str, value: Tensor, why: str) -> None:
    """Every entry is a whole number."""
    broken = value != value.round()
    if eager():
        message = "{} must be whole {}, but got {}"
        refuse(name, broken, lambda: message.format(name, why, first(value, broken)))


def probs(probs: Tensor, total: PerRow | None = None) -> None:
    """`probs` holds probabilities, which sum to `total` over the last axis if that is given."""
    floating("probs", probs)
    if not eager() or probs.numel() == 0:
        return
    outside = ~((probs >= 0) & (probs <= 1))
    message = "probs must be between 0 and 1, but got {}"
    refuse("probs", outside, lambda: message.format(first(probs, outside)))
    if total is None:
        return
    sums = probs.detach().sum(-1, dtype=torch.float64)
    off = sums - total
    wrong = off.abs() > 4 * torch.finfo(probs.dtype).eps * probs.shape[-1]
    message = "probs must sum to k over the last axis, but a row sums to {}"
    refuse("probs", wrong, lambda: message.format(first(sums.expand_as(off), wrong)))
