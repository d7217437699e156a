"""Sorting the last axis: values ascending, and where they came from.

Contract. `scores` has any floating dtype. Equal scores keep their order, -0 and +0 are equal, NaN
goes last: what `torch.sort(scores, stable=True)` returns, bit for bit. `order` is int64.

The operator `softorder::sort` is not differentiable.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels._operators import Operator, define_vmap
from softorder.kernels.sort import cpu, reference


class Sorted(NamedTuple):
    """values = scores.gather(-1, order), ascending."""

    values: Tensor
    order: Tensor


def sort(scores: Tensor) -> Sorted:
    """The last axis in ascending order, stable, NaN last.

    >>> import torch
    >>> sort(torch.tensor([2.0, float("nan"), -1.0, 2.0])).order
    tensor([2, 0, 3, 1])
    """
    return Sorted(*_sort.dispatched(scores.detach()))


def _fake(scores: Tensor) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape), scores.new_empty(scores.shape, dtype=torch.int64)


_sort = Operator(
    "sort(Tensor scores) -> (Tensor values, Tensor order)",
    reference=reference.sort,
    cpu=cpu.sort,
    fake=_fake,
)
define_vmap("sort", matrices=(0,), numbers=())
