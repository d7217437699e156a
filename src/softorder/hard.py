"""The limits of temperature to zero."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _axis, _check


def topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    dim: int = -1,
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
    _check.scores(scores, dim)
    _check.k(k, scores, dim)
    _check.mask(mask, scores)
    rows = _axis.rows(scores.detach(), dim, largest, mask)
    result = rows.clone() if rows.numel() == 0 else _topk(rows, k)
    return _axis.back(result, scores, dim)


def _topk(x: Tensor, k: float | Tensor) -> Tensor:
    edge = _ranked(x, k)
    above, level = x > edge, x == edge
    count, ties = (m.sum(-1, keepdim=True, dtype=torch.float64) for m in (above, level))
    left = _axis.per_row(k).unsqueeze(-1) - count
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
