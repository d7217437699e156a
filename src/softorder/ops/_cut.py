"""Operators on rows that are cut among ranks: what takes the place of the usual ones."""

from __future__ import annotations

from torch import Tensor

from softorder import _axis, _check
from softorder.kernels.shards import Shards
from softorder.kernels.threshold import sharded as threshold
from softorder.ops._method import density_of_cut_rows, method_of
from softorder.relaxations import sharded, sharded_order


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
    density = density_of_cut_rows(operator, method)
    x = _axis.rows(scores, dim, largest, mask)
    k, tau = _axis.per_rows(k, temperature, x)
    if check:
        _check.distributed.alike(shards, k=k, temperature=tau)
        _check.distributed.enough(shards, k=k, scores=x)
    log = operator == "log_soft_topk"
    return _axis.back(sharded.soft_topk(x, k, tau, density, shards, log), scores, dim)


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
    density = density_of_cut_rows("soft_quantile", method)
    x = _axis.rows(scores, dim, largest=True, mask=mask)
    levels, tau = _axis.leading_last(q, x), _axis.per_row(temperature, x)
    result = sharded.quantiles(x, levels, tau, density, shards).to(scores.dtype)
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


def order(
    operator: str,
    scores: Tensor,
    *,
    method: object,
    temperature: float | Tensor,
    dim: int,
    descending: bool,
    mask: Tensor | None,
    shards: Shards,
) -> Tensor:
    """soft_rank and soft_sort of the part that this rank has."""
    _check.scores(scores, dim)
    _check.temperature(temperature, scores, dim)
    _check.flag("descending", descending)
    _check.mask(mask, scores)
    if len(shards.groups) > 1:
        _check.distributed.one_axis(dim)
    served = method_of(operator, method)
    _check.distributed.laplace(method, operator in served.sharded)
    x = _axis.rows(scores, dim, largest=True, mask=mask)
    compute = {"soft_rank": sharded_order.soft_rank, "soft_sort": sharded_order.soft_sort}[operator]
    return _axis.back(compute(x, _axis.per_row(temperature, x), descending, shards), scores, dim)
