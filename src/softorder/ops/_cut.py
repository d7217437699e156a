"""Operators on rows that are cut among ranks: what takes the place of the usual ones."""

from __future__ import annotations

from torch import Tensor

from softorder import _axis, _check
from softorder.kernels.shards import Shards
from softorder.kernels.threshold import sharded as threshold
from softorder.methods import sharded
from softorder.ops._method import quantile_method, threshold_method


def topk(
    operator: str,
    scores: Tensor,
    k: float | Tensor,
    *,
    method: object,
    temperature: float | Tensor,
    dim: int,
    largest: bool,
    mask: Tensor | None,
    shards: Shards,
    check: bool = False,
) -> Tensor:
    """soft_topk and log_soft_topk of the part that this rank has."""
    _check.scores(scores, dim)
    _check.k_below(k, scores, dim)
    _check.temperature(temperature, scores, dim)
    _check.mask(mask, scores)
    served = threshold_method(operator, method)
    x = _axis.rows(scores, dim, largest, mask)
    k, tau = _axis.per_rows(k, temperature, x)
    if check:
        _check.distributed.alike(shards, k=k, temperature=tau)
        _check.distributed.enough(shards, k=k, scores=x)
    log = operator == "log_soft_topk"
    return _axis.back(sharded.soft_topk(x, k, tau, served.density, shards, log), scores, dim)


def quantile(
    scores: Tensor,
    q: float | Tensor,
    *,
    method: object,
    temperature: float | Tensor,
    dim: int,
    mask: Tensor | None,
    shards: Shards,
) -> Tensor:
    """soft_quantile, alike on all ranks; quantiles first, then the rows."""
    _check.q(q, scores, dim)
    _check.temperature(temperature, scores, dim)
    served = quantile_method(method)
    x = _axis.rows(scores, dim, largest=True, mask=mask)
    levels, tau = _axis.leading_last(q, x), _axis.per_row(temperature, x)
    result = sharded.quantiles(x, levels, tau, served.density, shards).to(scores.dtype)
    return _axis.leading(result, q, dim, keepdim=False)


def hard_topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    dim: int,
    largest: bool,
    mask: Tensor | None,
    shards: Shards,
) -> Tensor:
    """hard.topk of the part that this rank has."""
    _check.k_below(k, scores, dim)
    x = _axis.rows(scores.detach(), dim, largest, mask)
    result = threshold.hard(x, _axis.per_row(k, x), shards)
    return _axis.back(result, scores, dim)
