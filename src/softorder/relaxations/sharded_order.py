"""Laplace ranks and sorts of rows that are cut among ranks, as differentiable functions.

Every rank has some of the scores of every row, perhaps none, and they call these functions
together: with as many rows, the same temperature and the same direction, and all of them ask for
gradients or none. The loss is the sum of their losses. Derivatives are of the first order.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder.kernels._autograd import once
from softorder.kernels.order import sharded, sharded_sort
from softorder.kernels.shards import Shards

_NO_MORE = "soft_rank and soft_sort of sharded scores have no second derivatives"


def soft_rank(local: Tensor, temperature: Tensor, descending: bool, shards: Shards) -> Tensor:
    """1/2 + Σ_j F((x_i - x_j)/τ) among the scores of all ranks, for those of this one.

    `local` (..., n_r) is float32 or float64; `temperature` is float64, broadcasts over the rows,
    and gets its whole gradient on every rank.
    """
    return _run(_Rank, local, temperature, descending, shards)


def soft_sort(local: Tensor, temperature: Tensor, descending: bool, shards: Shards) -> Tensor:
    """t_j with FSum(t_j) = j - 1/2 over the scores of all ranks, for the places of this one.

    The results of the ranks, one after the other, are the sorted row; every rank gets as many
    values as it has scores. The arguments are those of `soft_rank`.
    """
    return _run(_Sort, local, temperature, descending, shards)


def _run(
    function: type[torch.autograd.Function],
    local: Tensor,
    temperature: Tensor,
    descending: bool,
    shards: Shards,
) -> Tensor:
    rows = local.shape[:-1]
    if not rows.numel():
        return local.clone()
    temperature = shards.shared(temperature).expand(rows).reshape(-1)
    scores = local.reshape(rows.numel(), local.shape[-1])
    return function.apply(scores, temperature, descending, shards).reshape(local.shape)


class _Rank(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, temperature: Tensor, descending: bool, shards: Shards
    ) -> Tensor:
        moment = int(ctx.needs_input_grad[1])
        ctx.save_for_backward(scores, temperature)
        ctx.ordered = sharded.order(scores, temperature, descending, shards, moment)
        return sharded.rank(scores, ctx.ordered)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        with torch.no_grad():
            found = sharded.rank_vjp(upstream, ctx.ordered, ctx.needs_input_grad[1])
        return *once(_NO_MORE, found, upstream, *ctx.saved_tensors), None, None


class _Sort(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, scores: Tensor, temperature: Tensor, descending: bool, shards: Shards
    ) -> Tensor:
        moment = int(ctx.needs_input_grad[1])
        ctx.save_for_backward(scores, temperature)
        ctx.ordered = sharded.order(scores, temperature, descending, shards, moment)
        t, ctx.levels, ctx.travel = sharded_sort.sort(scores, ctx.ordered, moment)
        return t

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        kept = ctx.ordered, ctx.levels, ctx.travel
        with torch.no_grad():
            found = sharded_sort.sort_vjp(upstream, *kept, ctx.needs_input_grad[1])
        return *once(_NO_MORE, found, upstream, *ctx.saved_tensors), None, None
