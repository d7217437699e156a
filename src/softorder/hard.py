"""The limits of temperature to zero."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.kernels.sort.rows import SortedRows, sort_rows
from softorder.ops import _cut, _forms


def topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
) -> Tensor:
    """1 for the k largest scores and 0 for the others: `so.soft_topk` as its temperature goes to 0.

    Maximises <scores, π> over {π in [0,1]^n, Σ π = k}. Scores that tie at the threshold share what
    is left of k equally, and a k that is not an integer leaves a part for the last of them. Takes
    the arguments of `so.soft_topk` except method and temperature. The derivative in scores is 0.

    >>> import torch, softorder as so
    >>> so.hard.topk(torch.tensor([3.0, 1.0, 2.0, 1.0]), 3)
    tensor([1.0000, 0.5000, 1.0000, 0.5000])
    >>> so.hard.topk(torch.tensor([3.0, 1.0, 2.0, 1.0]), 1.25)
    tensor([1.0000, 0.0000, 0.2500, 0.0000])
    """
    _check.flag("largest", largest)
    if _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        if not isinstance(k, Tensor):
            _check.k_among(k, _forms.number_of_scores(scores, dim), dim)
        options = {"largest": largest}
        return _forms.elementwise(topk, _cut.hard_topk, scores, dim, mask, {"k": k}, options)
    assert isinstance(dim, int)
    _check.scores(scores, dim)
    _check.k(k, scores, dim)
    _check.mask(mask, scores)
    rows = _axis.rows(scores.detach(), dim, largest, mask)
    result = rows.clone() if rows.numel() == 0 else _topk(rows, _axis.of_rows(k, scores, dim))
    return _axis.back(result, scores, dim)


def rank(
    scores: Tensor,
    *,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """The places of the scores, from 1 to n: `so.soft_rank` as its temperature goes to 0.

    Equal scores share the average of their places, as in scipy.stats.rankdata. What takes no part
    (masked out, or -inf) shares the last places in both directions.

    >>> import torch, softorder as so
    >>> so.hard.rank(torch.tensor([0.3, 2.0, -1.0, 2.0]))
    tensor([2.0000, 3.5000, 1.0000, 3.5000])
    """
    if _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        options = {"descending": descending}
        return _forms.elementwise(rank, _cut.no_limit, scores, dim, mask, {}, options)
    assert isinstance(dim, int)
    rows = _sorted(scores, dim, descending, mask)
    if rows is None:
        return scores.detach().clone()
    first, last = rows.ranges(descending)
    ranks = ((first + last + 1) / 2).to(rows.values.dtype)
    if rows.present is not None:
        behind = ((rows.present + 1 + rows.n) / 2).to(ranks.dtype)
        there = rows.to_origin((rows.places() < rows.present).expand_as(rows.order))
        ranks = torch.where(there, ranks, behind)
    return _axis.back(rows.spoil(ranks), scores, dim)


def sort(
    scores: Tensor,
    *,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """The scores in order: `so.soft_sort` as its temperature goes to 0.

    What takes no part goes last: +inf at the end of an ascending result, -inf of a descending one.
    Several axes, or None for all, are taken as one and filled row by row, the last axis fastest.
    The gradient is that of torch.sort: it goes from every place to the score that has it.

    >>> import torch, softorder as so
    >>> so.hard.sort(torch.tensor([0.3, 2.0, -1.0]), descending=True)
    tensor([ 2.0000,  0.3000, -1.0000])
    """
    if _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        options = {"descending": descending}
        return _forms.elementwise(sort, _cut.no_limit, scores, dim, mask, {}, options)
    assert isinstance(dim, int)
    rows = _sorted(scores, dim, descending, mask)
    if rows is None:
        return scores.clone()
    values = _values(rows, scores, dim, mask)
    values = rows.mirror(values) if descending else values
    if rows.present is not None:
        behind = -math.inf if descending else math.inf
        values = torch.where(rows.places() < rows.present, values, behind)
    return _axis.back(rows.spoil(values), scores, dim)


def permutation(
    scores: Tensor,
    *,
    k: int | None = None,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """The matrix that sorts: `so.soft_permutation` as its temperature goes to 0.

    Equal scores share their rows equally. What takes no part has the last rows, one each. Shape
    (..., k or n, n), with `dim` moved to the end; several axes are moved there as one.

    >>> import torch, softorder as so
    >>> so.hard.permutation(torch.tensor([2.0, 0.5, 2.0]))
    tensor([[0.0000, 1.0000, 0.0000],
            [0.5000, 0.0000, 0.5000],
            [0.5000, 0.0000, 0.5000]])
    """
    if not isinstance(dim, int):
        options = {"k": k, "descending": descending}
        return _forms.reduced(permutation, scores, _axis.axes(scores, dim), mask, options)
    rows = _sorted(scores, dim, descending, mask)
    n = scores.shape[dim]
    _check.whole_k(k, n)
    k = n if k is None else k
    if rows is None:
        return (
            scores.detach().movedim(dim, -1).unsqueeze(-2).expand(*[-1] * (scores.dim() - 1), k, n)
        )
    first, last = (v.unsqueeze(-2) for v in rows.ranges(descending))
    place = torch.arange(k, device=scores.device).unsqueeze(-1)
    shares = ((place >= first) & (place < last)) / (last - first)
    if rows.spoiled is not None:
        shares = torch.where(rows.spoiled.unsqueeze(-1), math.nan, shares)
    return shares.to(scores.dtype)


def quantile(
    scores: Tensor,
    q: float | Tensor,
    *,
    dim: int | tuple[int, ...] | None = -1,
    keepdim: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """The score that the part q of them lies below: `so.soft_quantile` as temperature goes to 0.

    Where q n is an integer, the middle of two scores. Shapes are those of `so.soft_quantile`. At
    q = 0 and q = 1 it is the smallest and the largest score, not an infinity. The gradient goes to
    that score (the first of equal ones), or to two different ones in equal parts.

    >>> import torch, softorder as so
    >>> so.hard.quantile(torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0.25, 0.3, 1.0]))
    tensor([1.5000, 2.0000, 8.0000])
    """
    _check.flag("keepdim", keepdim)
    if not isinstance(dim, int):
        return _forms.along_axes(quantile, scores, dim, mask, ("q", q), keepdim)
    rows = _sorted(scores, dim, False, mask)
    _check.q(q, scores, dim)
    levels = _axis.leading_last(q, scores)
    shape = scores.movedim(dim, -1).shape[:-1]
    if rows is None:
        result = scores.new_full((*shape, levels.shape[-1]), math.nan)
    else:
        values = _values(rows, scores, dim, mask)
        result = _quantile(rows, values, levels.expand(*shape, -1))
    return _axis.leading(result.to(scores.dtype), q, dim, keepdim)


def _sorted(scores: Tensor, dim: int, descending: bool, mask: Tensor | None) -> SortedRows | None:
    """The checked rows in order; None if they have no elements."""
    _check.scores(scores, dim)
    _check.flag("descending", descending)
    _check.mask(mask, scores)
    rows = _axis.rows(scores.detach(), dim, largest=True, mask=mask)
    return None if rows.shape[-1] == 0 else sort_rows(rows)


def _values(rows: SortedRows, scores: Tensor, dim: int, mask: Tensor | None) -> Tensor:
    """The scores in order, with their gradient."""
    return _axis.rows(scores, dim, largest=True, mask=mask).gather(-1, rows.order)


def _quantile(rows: SortedRows, values: Tensor, q: Tensor) -> Tensor:
    available = rows.n if rows.present is None else rows.present
    place = q.detach() * available
    last = torch.as_tensor(available, device=place.device) - 1
    low, high = torch.ceil(place).long() - 1, torch.floor(place).long()
    ends = (torch.minimum(i.clamp(min=0), last.clamp(min=0)) for i in (low, high))
    below, above = (values.gather(-1, i) for i in ends)
    middle = torch.where(below == above, below, 0.5 * below + 0.5 * above)
    if rows.present is not None:
        middle = torch.where(rows.present > 0, middle, math.nan)
    return rows.spoil(middle)


def _topk(x: Tensor, k: float | Tensor) -> Tensor:
    edge = _ranked(x, k)
    above, level = x > edge, x == edge
    count, ties = (m.sum(-1, keepdim=True, dtype=torch.float64) for m in (above, level))
    left = _axis.per_row(k, x).unsqueeze(-1) - count
    # nothing is left over for an edge at -inf, and never more than 1 for each
    share = (left / ties).clamp(0, 1).to(x.dtype)
    p = torch.where(above, 1.0, torch.where(level & (x > -math.inf), share, 0.0))
    return torch.where(x.isnan().any(-1, keepdim=True), math.nan, p).to(x.dtype)


def _ranked(x: Tensor, k: float | Tensor) -> Tensor:
    """The ⌈k⌉-th largest score of every row; the largest for k = 0."""
    n = x.shape[-1]
    if not isinstance(k, Tensor):
        rank = max(math.ceil(k), 1)
        return x.kthvalue(n - rank + 1, dim=-1, keepdim=True).values
    ranks = k.ceil().to(torch.int64).clamp(1, n).expand(x.shape[:-1])
    return x.sort(dim=-1, descending=True).values.gather(-1, ranks.unsqueeze(-1) - 1)
