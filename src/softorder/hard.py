"""The limits of temperature to zero."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.kernels.sort.rows import SortedRows, sort_rows
from softorder.ops import _cut, _forms
from softorder.ops._interpolation import INTERPOLATIONS, places


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
    if _forms.special(scores, dim) or _forms.is_jagged(scores):
        _check.floating_dtype("scores", scores)
        if _forms.is_jagged(scores):
            return _jagged("topk", scores, dim, mask, k, largest=largest)
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
    if _forms.is_jagged(scores):
        return _jagged("rank", scores, dim, mask, descending=descending)
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
    if _forms.is_jagged(scores):
        return _jagged("sort", scores, dim, mask, descending=descending)
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
    q: float | Sequence[float] | Tensor,
    *,
    dim: int | tuple[int, ...] | None = -1,
    keepdim: bool = False,
    mask: Tensor | None = None,
    interpolation: str = "inverse",
    weights: Tensor | None = None,
) -> Tensor:
    """The score that the part q of them lies below: `so.soft_quantile` as temperature goes to 0.

    Where q n is an integer, the middle of two scores. At q = 0 and q = 1 it is the smallest and the
    largest score, not an infinity. With `weights`, scores count so many times. The other
    interpolations are those of torch.quantile. Shapes are those of `so.soft_quantile`. The gradient
    goes to that score (the first of equal ones), or to the two between which the result lies.

    >>> import torch, softorder as so
    >>> so.hard.quantile(torch.tensor([1.0, 2.0, 4.0, 8.0]), torch.tensor([0.25, 0.3, 1.0]))
    tensor([1.5000, 2.0000, 8.0000])
    >>> so.hard.quantile(torch.tensor([1.0, 2.0, 4.0, 8.0]), [0.25, 0.5], interpolation="linear")
    tensor([1.7500, 3.0000])
    """
    _check.flag("keepdim", keepdim)
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, hard

        operator = partial(hard.quantile, interpolation=interpolation)
        return _jagged.quantile(operator, scores, dim, mask, keepdim, q, weights)
    _check.choice("interpolation", interpolation, INTERPOLATIONS)
    q = _check.quantiles.as_tensor(q)
    if weights is not None:
        _check.quantiles.weights(weights, scores, interpolation)
        weights = weights.expand(scores.shape)
    if not isinstance(dim, int):
        if weights is not None:
            weights = _axis.join(weights, _axis.axes(scores, dim))
        options = {"interpolation": interpolation, "weights": weights}
        return _forms.along_axes(quantile, scores, dim, mask, ("q", q), keepdim, **options)
    rows = _sorted(scores, dim, False, mask)
    _check.q(q, scores, dim)
    levels = _axis.leading_last(q, scores)
    shape = scores.movedim(dim, -1).shape[:-1]
    if rows is None:
        result = scores.new_full((*shape, levels.shape[-1]), math.nan)
    else:
        values = _values(rows, scores, dim, mask)
        levels = levels.detach().expand(*shape, -1)
        if weights is not None:
            w = _axis.last(weights.detach(), dim)
            result = _weighted_quantile(rows, values, levels, w)
        elif interpolation == "inverse":
            result = _quantile(rows, values, levels)
        else:
            result = _interpolated(rows, values, levels, interpolation)
    return _axis.leading(result.to(scores.dtype), q, dim, keepdim)


def _jagged(name: str, scores: Tensor, dim: object, mask: Any, *args: Any, **options: Any) -> Any:
    """The same of rows of different lengths."""
    from softorder.ragged import _jagged, hard

    return _jagged.per_score(getattr(hard, name), scores, dim, mask, *args, **options)


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
    place = q * rows.available
    return _middle(rows, values, torch.ceil(place).long() - 1, torch.floor(place).long())


def _weighted_quantile(rows: SortedRows, values: Tensor, q: Tensor, weights: Tensor) -> Tensor:
    """Where the weights of what is not above come to q of all."""
    w = weights.double().gather(-1, rows.order)
    w = torch.where(rows.places() < torch.as_tensor(rows.available, device=w.device), w, 0.0)
    upto, total = w.cumsum(-1), w.sum(-1, keepdim=True)
    level, slack = q * total, 8 * torch.finfo(torch.float64).eps * total
    low = torch.searchsorted(upto, (level - slack).contiguous())
    high = torch.searchsorted(upto, (level + slack).contiguous(), right=True)
    counts = torch.where(w > 0, rows.places(), 0)
    first, last = (w > 0).int().argmax(-1, keepdim=True), counts.amax(-1, keepdim=True)
    low, high = (torch.minimum(torch.maximum(i, first), last) for i in (low, high))
    return torch.where(total > 0, _middle(rows, values, low, high), math.nan)


def _interpolated(rows: SortedRows, values: Tensor, q: Tensor, interpolation: str) -> Tensor:
    place = places(q, rows.available, interpolation)
    low, high = (values.double().gather(-1, i.long()) for i in place[:2])
    return _known(rows, place.between(low, high))


def _middle(rows: SortedRows, values: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """Of the values at two places, as near as there are any."""
    last = torch.as_tensor(rows.available, device=low.device) - 1
    ends = (torch.minimum(i.clamp(min=0), last.clamp(min=0)) for i in (low, high))
    below, above = (values.gather(-1, i) for i in ends)
    return _known(rows, torch.where(below == above, below, 0.5 * below + 0.5 * above))


def _known(rows: SortedRows, result: Tensor) -> Tensor:
    """NaN for rows that have none, or a NaN."""
    if rows.present is not None:
        result = torch.where(rows.present > 0, result, math.nan)
    return rows.spoil(result)


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
    most = n
    if _check.at_hand(ranks) and ranks.numel():  # it is enough to sort so many
        most = int(ranks.max())
    return x.topk(most, dim=-1).values.gather(-1, ranks.unsqueeze(-1) - 1)
