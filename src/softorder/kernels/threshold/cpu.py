"""Calls of the compiled top-k: the thresholds, p, and its gradients.

Scores may be of any float format and lie anywhere in memory: nothing is copied.
"""

from __future__ import annotations

from array import array
from math import prod

import torch
from torch import Tensor

from softorder._axis import back, beside, last
from softorder._check import PerRow
from softorder.kernels import _native
from softorder.kernels._layout import FORMATS, layout_of
from softorder.kernels.formulas import exact

Numbers = array  #: of floats, as thresholds that no tensor need be made for


def topk(
    scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None, density: int, dim: int
) -> Tensor:
    """p along any axis, laid out like the scores."""
    p = torch.empty_like(scores)
    if dim == -1:
        _solve(scores, k, temperature, mask, density, p, 0, None)
    else:
        _solve(*_rows(dim, scores, k, temperature, mask), density, last(p, dim), 0, None)
    return p


def remembered(
    scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None, density: int, dim: int
) -> tuple[Tensor, Numbers]:
    """The same and its thresholds."""
    p, rows = torch.empty_like(scores), scores.numel() // scores.shape[dim]
    b = array("d" if scores.dtype is torch.float64 else "f", bytes(2 * rows * _size(scores)))
    out = p if dim == -1 else last(p, dim)
    _solve(*_rows(dim, scores, k, temperature, mask), density, out, _native.address(b), None)
    return p, b


def _rows(
    dim: int, scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None
) -> tuple[Tensor, PerRow, PerRow, Tensor | None]:
    """With the axis behind the others."""
    if dim == -1:
        return scores, k, temperature, mask
    return last(scores, dim), k, temperature, beside(mask, scores, dim)


def forward(
    scores: Tensor, k: PerRow, temperature: PerRow, mask: Tensor | None, density: int
) -> tuple[Tensor, Tensor]:
    """The same as tensors: the thresholds are centres and rests, stacked."""
    p, b = torch.empty_like(scores), _empty_thresholds(scores)
    _solve(scores, k, temperature, mask, density, p, _native.pointer(b), None)
    return p, b


def threshold(
    scores: Tensor, k: Tensor, temperature: Tensor, density: int
) -> tuple[Tensor, Tensor]:
    """Thresholds, and the number of passes that they took."""
    b = _empty_thresholds(scores)
    sweeps = scores.new_empty(scores.shape[:-1], dtype=torch.int32)
    _solve(scores, k, temperature, None, density, None, _native.pointer(b), sweeps)
    return b, sweeps


def _empty_thresholds(scores: Tensor) -> Tensor:
    return scores.new_empty((2, *scores.shape[:-1]), dtype=exact(scores.dtype))


def _solve(
    x: Tensor,
    k: PerRow,
    temperature: PerRow,
    mask: Tensor | None,
    density: int,
    p: Tensor | None,
    centre: int,
    sweeps: Tensor | None,
) -> None:
    """Solves along the last axis; fills p, the thresholds from `centre` on and sweeps if given."""
    *shape, n = x.shape
    rows = prod(shape)
    k, at_k, k_stride = _native.placed(k, shape)
    temperature, at_temperature, temperature_stride = _native.placed(temperature, shape)
    if mask is not None and mask.shape != x.shape:
        mask = mask.expand(x.shape)
    places = layout_of(x, x if p is None else p, mask)
    _native.call(
        "topk_forward",
        _native.pointer(x),
        at_k,
        at_temperature,
        _native.pointer(p),
        centre,
        centre and centre + rows * _size(x),
        0 if sweeps is None else _native.pointer(sweeps),
        0 if mask is None else _native.pointer(mask),
        _native.address(places) if places else 0,
        0,
        rows,
        n,
        k_stride,
        temperature_stride,
        density,
        FORMATS[x.dtype],
        _native.threads(),
    )


def backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: PerRow,
    b: Tensor,
    mask: Tensor | None,
    density: int,
    by_temperature: bool,
    index: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores; and per row of k, and of temperature if wanted, stacked.

    With an index (int64, one per row), upstream is 0 everywhere else: one number per row.
    """
    by_row = b.new_empty((1 + by_temperature, *b.shape[1:]), dtype=torch.float64)
    centre = _native.pointer(b)
    by_scores = _backward(upstream, scores, temperature, centre, mask, density, by_row, index)
    return by_scores, by_row


def backward_of_scores(
    upstream: Tensor,
    scores: Tensor,
    temperature: PerRow,
    b: Numbers,
    mask: Tensor | None,
    density: int,
    dim: int,
) -> Tensor:
    """Gradients of the scores alone, with thresholds that were remembered."""
    x, _, tau, own = _rows(dim, scores, 0, temperature, mask)
    centre = _native.address(b)
    v = upstream if dim == -1 else last(upstream, dim)
    by_rows = _backward(v, x, tau, centre, own, density, None, None)
    return by_rows if dim == -1 else back(by_rows, scores, dim)


def _backward(
    upstream: Tensor,
    scores: Tensor,
    temperature: PerRow,
    centre: int,
    mask: Tensor | None,
    density: int,
    by_row: Tensor | None,
    index: Tensor | None,
) -> Tensor:
    """Gradients of the scores; fills those per row if given."""
    *shape, n = scores.shape
    by_scores = torch.empty_like(scores)
    rows, by_k = prod(shape), 0 if by_row is None else _native.pointer(by_row)
    temperature, at_temperature, stride = _native.placed(temperature, shape)
    if index is not None:
        index, upstream = index.contiguous(), upstream.to(exact(scores.dtype)).contiguous()
    elif upstream.dtype != scores.dtype:
        upstream = upstream.to(scores.dtype)
    if mask is not None and mask.shape != scores.shape:
        mask = mask.expand(scores.shape)
    places = layout_of(scores, upstream if index is None else scores, by_scores, mask)
    _native.call(
        "topk_backward",
        _native.pointer(scores),
        _native.pointer(upstream),
        0 if index is None else _native.pointer(index),
        at_temperature,
        centre,
        centre + rows * _size(scores),
        _native.pointer(by_scores),
        by_k,
        0 if by_row is None or len(by_row) == 1 else by_k + rows * by_row.element_size(),
        0 if mask is None else _native.pointer(mask),
        _native.address(places) if places else 0,
        0,
        rows,
        n,
        stride,
        density,
        FORMATS[scores.dtype],
        _native.threads(),
    )
    return by_scores


def _size(scores: Tensor) -> int:
    """Bytes of a threshold."""
    return 8 if scores.dtype is torch.float64 else 4
