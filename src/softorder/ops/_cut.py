"""Operators on rows that are cut among ranks: what takes the place of the usual ones."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from softorder import _axis, _check
from softorder.kernels.shards import Shards
from softorder.methods import sharded
from softorder.ops._forms import Axes, joined
from softorder.ops._method import threshold_method


def topk(
    operator: str,
    scores: Tensor,
    k: float | Tensor,
    *,
    method: object,
    temperature: float | Tensor,
    dim: Axes,
    largest: bool,
    mask: Tensor | None,
    shards: Shards,
    check: bool = False,
) -> Tensor:
    """soft_topk and log_soft_topk of the part that this rank has."""
    if not isinstance(dim, int):
        options = {"method": method, "largest": largest, "shards": shards, "check": check}
        numbers = {"k": k, "temperature": temperature}
        return joined(partial(topk, operator), scores, dim, mask, **numbers, **options)
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
