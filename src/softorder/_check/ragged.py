"""Rows of different lengths: values that lie one behind another, and where rows begin and end."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder._check import _kinds, _tensors, _values
from softorder._check._mode import eager
from softorder._check._values import first, refuse


def rows(values: Tensor, offsets: Tensor, mask: Tensor | None) -> None:
    """Values (total,), offsets (rows + 1,) that ascend from 0 to total, a mask like the values."""
    _tensors.floating("values", values)
    if values.dim() != 1:
        raise ValueError(
            "values must have one axis, with the rows one behind another, but got shape "
            f"{tuple(values.shape)}"
        )
    _offsets(offsets, values)
    if mask is not None:
        _tensors.mask(mask, values)


def _offsets(offsets: Tensor, values: Tensor) -> None:
    if not isinstance(offsets, Tensor):
        raise TypeError(f"offsets must be a tensor of integers, but got {type(offsets).__name__}")
    if offsets.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"offsets must have the dtype int64 or int32, but got {_values.dtype(offsets)}"
        )
    _kinds.dense("offsets", offsets)
    _values.beside("offsets", offsets, values)
    if offsets.dim() != 1 or offsets.shape[0] == 0:
        raise ValueError(
            "offsets must have one axis, with one entry more than there are rows, but got shape "
            f"{tuple(offsets.shape)}"
        )
    if eager():
        total = values.shape[0]
        ends = torch.cat([offsets[:1], total - offsets[-1:]])
        wrong = torch.cat([ends != 0, offsets.diff() < 0])
        refuse("offsets", wrong, lambda: _wrong_offsets(offsets, total))


def _wrong_offsets(offsets: Tensor, total: int) -> str:
    falls = (offsets.diff() < 0).nonzero()
    if len(falls):
        place = int(falls[0])
        found = f"{int(offsets[place])} before {int(offsets[place + 1])}"
    else:
        found = f"{int(offsets[0])} at the beginning and {int(offsets[-1])} at the end"
    return f"offsets must ascend from 0 to {total}, the number of values, but got {found}"


def places(name: str, value: Tensor, values: Tensor, offsets: Tensor, ignore_index: int) -> None:
    """A place in its row for every value, or ignore_index."""
    _tensors.integers(name, value)
    if value.shape != values.shape:
        raise ValueError(
            f"{name} must have the shape of values, {tuple(values.shape)}, but got shape "
            f"{tuple(value.shape)}"
        )
    if eager():
        lengths = offsets.diff()
        n = lengths.repeat_interleave(lengths, output_size=values.shape[0])
        wrong = ((value < 0) | (value >= n)) & (value != ignore_index)
        message = "{} must be a place in its row, or ignore_index = {}, but got {}"
        refuse(name, wrong, lambda: message.format(name, ignore_index, int(first(value, wrong))))


def jagged(scores: Any, dim: object) -> None:
    """Scores of rows that differ along their second axis, their last one, which is `dim`."""
    _tensors.floating_dtype("scores", scores)
    _rows(scores)
    if type(dim) is not int:
        raise TypeError(f"dim of a jagged tensor must be an int, but got {type(dim).__name__}")
    if dim not in (-1, 1):
        raise ValueError(f"dim must be 1 or -1, the ragged axis of the scores, but got {dim}")


def same_rows(name: str, value: Any, offsets: Tensor) -> None:
    """A jagged tensor whose rows are as long as those of the scores."""
    if getattr(value, "layout", None) is not torch.jagged:
        kind = type(value).__name__
        raise TypeError(f"{name} must be a jagged tensor, as the scores are, but got {kind}")
    _rows(value)
    own = value.offsets() if value.lengths() is None else value.contiguous().offsets()
    if own is offsets:
        return
    alike = own.shape == offsets.shape and (not eager() or bool((own == offsets).all()))
    if not alike:
        raise ValueError(
            f"{name} must have rows of the lengths of the scores, {offsets.diff().tolist()}, "
            f"but got {own.diff().tolist()}"
        )


def _rows(value: Any) -> None:
    """Neither more axes than that of the rows and the ragged one, nor these the other way round."""
    if value.dim() != 2:
        raise ValueError(
            "a jagged tensor must have the shape (rows, *), a list of numbers in each row, but "
            f"got {tuple(value.shape)}: call it on .values(), or on so.ragged for each column"
        )


def candidates(target: Tensor, offsets: Tensor, ignore_index: int) -> None:
    """A place in its row for every row, or ignore_index."""
    _tensors.integers("target", target)
    _values.beside("target", target, offsets)
    lengths = offsets.diff()
    if target.shape != lengths.shape:
        raise ValueError(
            f"target must have the shape {tuple(lengths.shape)}, one for each row of the scores, "
            f"but got shape {tuple(target.shape)}"
        )
    if eager():
        wrong = ((target < 0) | (target >= lengths)) & (target != ignore_index)
        message = "target must be a place in its row, or ignore_index = {}, but got {}"
        refuse("target", wrong, lambda: message.format(ignore_index, int(first(target, wrong))))


def no_classes(name: str, value: Any) -> None:
    """What says something of every class is None: rows of different candidates have none."""
    if value is not None:
        raise ValueError(
            f"{name} must be None for jagged scores, whose rows have candidates of their own and "
            "no common classes"
        )


def per_row_p_k(p_k: Tensor, rows: int, per_sample: bool) -> None:
    """`p_k` is shared (K), or per sample (rows, K)."""
    shape = (rows,) if per_sample else ()
    if tuple(p_k.shape[:-1]) != shape:
        raise ValueError(
            f"p_k must have the shape {(*shape, 'K')} for jagged scores"
            f"{'' if per_sample else ', whose rows have no common classes'}, but got "
            f"{tuple(p_k.shape)}"
        )


def no_matrices(name: str, value: Any) -> None:
    """Not jagged: there would be a matrix of another size for every row."""
    if getattr(value, "layout", None) is torch.jagged:
        raise TypeError(
            f"{name} must be a dense tensor, but got one of layout jagged: its rows would have "
            "matrices of different sizes. Call it for each of its rows, or pad them with a mask"
        )
