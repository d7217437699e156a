"""Operators on rows that are cut among the ranks of a process group.

For tensors that know how they are cut (torch.distributed.tensor.DTensor) there is nothing to call
here: the operators themselves take them. These functions take the part that this rank has, and are
to be called by all ranks of the group alike. Rows are cut along `dim`, into pieces of any length.

The loss is the sum of what the ranks lose, each from its own part of the result: `backward()` on
every rank gives everyone the gradient of its own scores, and of k and temperature, which all ranks
have alike, the whole of it.

>>> import torch, softorder as so
>>> from torch import distributed
>>> distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
>>> so.distributed.soft_topk(torch.tensor([3.0, 1.0, 2.0]), 2, temperature=0.5).sum()
tensor(2.)
>>> so.distributed.hard_topk(torch.tensor([3.0, 1.0, 2.0]), 2)
tensor([1., 0., 1.])
>>> distributed.destroy_process_group()
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from softorder import _axis, _check
from softorder.densities import Density
from softorder.kernels.shards import WHOLE, Shards
from softorder.losses._sharded import Cut
from softorder.losses.fenchel import part_of_fenchel_young
from softorder.losses.top_k import part_of_top_k_cross_entropy
from softorder.ops import _cut
from softorder.ops._forms import joined, reduced

__all__ = [
    "fenchel_young",
    "hard_topk",
    "log_soft_topk",
    "shared",
    "soft_median",
    "soft_quantile",
    "soft_rank",
    "soft_sort",
    "soft_topk",
    "sum_gradients",
    "top_k_cross_entropy",
]


def soft_topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: float | Tensor = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
    group: Any = None,
    check: bool = False,
) -> Tensor:
    """`so.soft_topk` of rows that are cut among ranks: p of the scores that this rank has.

    No scores travel: the ranks exchange at most 32 numbers per row at a time, a few times.

    Args:
        scores: the part of this rank. Its size along `dim` may differ from rank to rank, and be 0.
        k: of the whole rows, the same on all ranks.
        method: a density by name, or one of your own.
        temperature: the same on all ranks.
        dim: the axis that is cut; or several axes, which compete as one, or None for all of them.
        largest: as in `so.soft_topk`.
        mask: of this rank's scores.
        group: the process group; the default one if None.
        check: True compares k and temperature of all ranks, and raises on all where they differ.
    """
    options: dict[str, Any] = {"method": method, "largest": largest, "check": check}
    cut = partial(_cut.topk, "soft_topk", shards=_shards(group), **options)
    return joined(cut, scores, dim, mask, k=k, temperature=temperature)


def log_soft_topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: float | Tensor = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
    group: Any = None,
    check: bool = False,
) -> Tensor:
    """`so.log_soft_topk` of rows that are cut among ranks: the arguments of `soft_topk`."""
    options: dict[str, Any] = {"method": method, "largest": largest, "check": check}
    cut = partial(_cut.topk, "log_soft_topk", shards=_shards(group), **options)
    return joined(cut, scores, dim, mask, k=k, temperature=temperature)


def soft_quantile(
    scores: Tensor,
    q: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: float | Tensor = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    mask: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """`so.soft_quantile` of rows that are cut among ranks.

    The result is the same on all ranks, and so is what they compute from it: it counts once in the
    loss, not once for every rank. The arguments are those of `so.soft_quantile`.
    """
    arguments = {"q": q, "method": method, "temperature": temperature}
    cut = partial(_cut.quantile, shards=_shards(group))
    return reduced(cut, scores, _axis.axes(scores, dim), mask, arguments)


def soft_median(
    scores: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: float | Tensor = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    mask: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """`soft_quantile` with q = 1/2."""
    return soft_quantile(
        scores, 0.5, method=method, temperature=temperature, dim=dim, mask=mask, group=group
    )


def soft_rank(
    scores: Tensor,
    *,
    temperature: float | Tensor = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """`so.soft_rank` ("laplace") of rows that are cut among ranks: ranks of this rank's scores.

    Scores travel to the rank that has their range of values, sums over ranges follow, and ranks
    come home: memory O(n / ranks) on every rank, also for skewed and tied scores. There are first
    derivatives.
    """
    cut = partial(_cut.order, "soft_rank", shards=_shards(group), method="laplace")
    return joined(cut, scores, dim, mask, temperature=temperature, descending=descending)


def soft_sort(
    scores: Tensor,
    *,
    temperature: float | Tensor = 1.0,
    dim: int = -1,
    descending: bool = False,
    mask: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """`so.soft_sort` ("laplace") of rows that are cut among ranks.

    What all ranks get is the sorted row: this one has as many of its places as it has scores.
    """
    return _cut.order(
        "soft_sort",
        scores,
        method="laplace",
        temperature=temperature,
        dim=dim,
        descending=descending,
        mask=mask,
        shards=_shards(group),
    )


def hard_topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
    group: Any = None,
) -> Tensor:
    """`so.hard.topk` of rows that are cut among ranks: 1 for what is among the k largest of all."""
    cut = partial(_cut.hard_topk, shards=_shards(group))
    return joined(cut, scores, dim, mask, k=k, largest=largest)


def top_k_cross_entropy(
    scores: Tensor,
    target: Tensor,
    p_k: Tensor | Sequence[float],
    *,
    per_sample: bool = False,
    method: str | Density | object = "laplace",
    temperature: float | Tensor = 1.0,
    m: int | None = None,
    top1: str = "softmax",
    weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
    group: Any = None,
) -> Tensor:
    """`so.losses.top_k_cross_entropy` with the classes cut among ranks, in order of the ranks.

    `scores` are those of this rank's classes; target, p_k and weight speak of all classes, alike on
    all ranks. So is the loss: it counts once. No rank ever has all scores; with m, each tells the
    others its m largest.
    """
    shards = _shards(group)
    return part_of_top_k_cross_entropy(
        scores,
        target,
        p_k,
        Cut.of(scores, 0 if scores.dim() == 1 else 1, shards),
        WHOLE,
        per_sample=per_sample,
        method=method,
        temperature=temperature,
        m=m,
        top1=top1,
        weight=weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
    )


def fenchel_young(
    scores: Tensor,
    target: Tensor,
    k: float | Tensor | None = None,
    method: str | Density | object = "laplace",
    *,
    temperature: float | Tensor = 1.0,
    dim: int = -1,
    mask: Tensor | None = None,
    reduction: str = "mean",
    group: Any = None,
) -> Tensor:
    """`so.losses.fenchel_young` of rows that are cut among ranks along `dim`, alike on all ranks.

    `scores`, `target` and `mask` are this rank's part.
    """
    return part_of_fenchel_young(
        scores,
        target,
        k,
        dim,
        mask,
        reduction,
        _shards(group),
        WHOLE,
        method=method,
        temperature=temperature,
    )


def shared(values: Tensor, group: Any = None) -> Tensor:
    """Values that all ranks have alike, and of which each computes a part of its own.

    The identity; but on the way back the gradients of all ranks are added up, so that everyone gets
    the whole of it. It stands between layers that are the same everywhere and one that is cut.

    Args:
        values: of any shape, the same on all ranks.
        group: the ranks; None for all of them.
    """
    return _shards(group).shared(values)


def sum_gradients(module: nn.Module, group: Any = None) -> None:
    """Adds up the gradients of a module's parameters over the ranks, each of which has a share.

    Args:
        module: the same on all ranks.
        group: the ranks; None for all of them.
    """
    shards = _shards(group)
    for parameter in module.parameters():
        if parameter.requires_grad:
            own = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            parameter.grad = shards.add(own)


def _shards(group: Any) -> Shards:
    _check.distributed.initialised()
    return Shards(group)
