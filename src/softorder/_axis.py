"""`dim`, `largest`, `mask` and per-row numbers, once, for everybody.

Below this file scores have their rows on the last axis, the largest are wanted, elements that
take no part are at -inf, and k and temperature are float64 tensors: one number, or one per row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from softorder import _check


def axes(scores: Tensor, dim: int | Sequence[int] | None) -> tuple[int, ...]:
    """The axes that are meant, in order, from 0; all of them for None."""
    _check.several(dim, scores.dim())
    if dim is None:
        return tuple(range(scores.dim()))
    several = (dim,) if isinstance(dim, int) else dim
    return tuple(sorted(axis % scores.dim() for axis in several))


def join(value: Tensor, axes: Sequence[int]) -> Tensor:
    """The axes as one, behind the others."""
    return value.movedim(tuple(axes), tuple(range(-len(axes), 0))).flatten(-len(axes))


def split(result: Tensor, like: Tensor, axes: Sequence[int]) -> Tensor:
    """The same axes again where they were, counted from the end: there may be more in front."""
    sizes = [like.shape[axis] for axis in axes]
    places = tuple(axis - like.dim() for axis in axes)
    return result.unflatten(-1, sizes).movedim(tuple(range(-len(axes), 0)), places)


def rows(scores: Tensor, dim: int, largest: bool, mask: Tensor | None) -> Tensor:
    """The scores in the form that everything below expects, in float32 at least."""
    if not largest:
        scores = -scores
    return last(clean(scores, mask), dim)


def clean(scores: Tensor, mask: Tensor | None) -> Tensor:
    """In float32 at least, and at -inf where the mask is False."""
    if mask is not None:
        # where, not a large negative number: NaN is hidden too, and the gradient is exactly 0
        scores = torch.where(mask, scores, -math.inf)
    if scores.dtype != torch.float32 and scores.dtype != torch.float64:
        scores = scores.float()
    return scores


def last(value: Tensor, dim: int) -> Tensor:
    """The axis `dim` behind the others."""
    return value if dim == -1 or dim == value.dim() - 1 else value.movedim(dim, -1)


def beside(mask: Tensor | None, scores: Tensor, dim: int) -> Tensor | None:
    """A mask that broadcasts to the scores, for their rows."""
    if mask is None or dim == -1 or dim == scores.dim() - 1:
        return mask
    return mask.expand(scores.shape).movedim(dim, -1)


def back(result: Tensor, like: Tensor, dim: int) -> Tensor:
    """The result of a row operator with the axes and the dtype of the scores it came from."""
    if result.dtype != like.dtype:
        result = result.to(like.dtype)
    return result if dim == -1 or dim == like.dim() - 1 else result.movedim(-1, dim)


def beside_rows(points: Tensor, scores: Tensor, dim: int) -> Tensor:
    """Points on the last axis, behind those of the rows; given at `dim`, or 1-D for all rows.

    `scores` are those that were given: they tell which axis `dim` is.
    """
    if points.dim() == 1:
        return points
    return points.movedim(dim if dim < 0 else dim - scores.dim(), -1)


def leading_last(q: _check.PerRow, scores: Tensor) -> Tensor:
    """Quantiles as float64 on the last axis, behind those of the rows; given on the first one."""
    levels = per_row(q, scores)
    return levels.unsqueeze(0) if levels.dim() == 0 else levels.movedim(0, -1)


def leading(result: Tensor, q: _check.PerRow, dim: int, keepdim: bool) -> Tensor:
    """One result per row and quantile, as torch.quantile arranges them."""
    several = isinstance(q, Tensor) and q.dim() > 0
    result = result.movedim(-1, 0)
    if keepdim:
        result = result.unsqueeze(dim + 1 if dim >= 0 else dim)
    return result if several else result.squeeze(0)


def of_rows(value: _check.PerRow, scores: Tensor, dim: int | Sequence[int]) -> _check.PerRow:
    """Numbers of rows in the shape of these.

    They broadcast over the rows, the shape of scores without `dim`; or they have as many axes as
    the scores, more than rows can have, and then size 1 along `dim`, as `keepdim` leaves it. So no
    shape means two things: (3, 1) beside scores (2, 3, n) are rows, beside (3, n) they were kept.
    """
    if not isinstance(value, Tensor) or value.dim() < scores.dim():
        return value
    return value.squeeze(dim)  # type: ignore[arg-type]


def per_row(value: _check.PerRow, scores: Tensor, dim: int | None = None) -> Tensor:
    """A number, or one per row, as float64 (where there is such a thing) beside the scores.

    With a `dim`, they may have kept that axis. It is written there, not copied: a copy from the
    host would wait for the device.
    """
    if not isinstance(value, Tensor) and scores.is_cpu and _check.eager():
        return constant(value)
    wide = torch.float32 if scores.device.type == "mps" else torch.float64
    if isinstance(value, Tensor):
        if dim is not None and value.dim() == scores.dim():
            value = value.squeeze(dim)
        if value.is_cpu and scores.is_cpu:
            return value.double()  # a microsecond less than with the device
        return value.to(scores.device, wide)
    return torch.full((), value, dtype=wide, device=scores.device)


def per_rows(
    one: _check.PerRow, other: _check.PerRow, scores: Tensor, dim: int | None = None
) -> tuple[Tensor, Tensor]:
    """Two of them."""
    tensors = isinstance(one, Tensor) or isinstance(other, Tensor)
    if tensors or not scores.is_cpu or not _check.eager():
        return per_row(one, scores, dim), per_row(other, scores, dim)
    return constant(one), constant(other)  # what happens most, with one look at the mode


@lru_cache(maxsize=1024)
def constant(value: float) -> Tensor:
    """A number as a tensor that nobody writes to."""
    # A cached tensor must be usable everywhere, also when it was first needed in inference mode.
    with torch.inference_mode(False):
        return torch.tensor(value, dtype=torch.float64, device="cpu")
