"""Soft ranks and the soft sort of the densities whose F-sums take one walk: laplace and uniform.

Contract. `scores` is float32 or float64, rows on the last axis; `temperature` is float64 and
broadcasts over the rows. -inf is absent and goes last, +inf is certain, NaN spoils its row.

    rank   1/2 + Σ_j F((x_i - x_j)/τ); the sorted scores, and their indices
    sort   t_j with FSum(t_j) = j - 1/2; the sorted scores, and their indices; and of every t, in
           ascending order, also where t is not: `segment`, the number of finite scores below it;
           `rest`, its distance from the one to which it is drawn (negative or -0: from the one
           above); `slope`, Σ_i f((t_j - x_i)/τ). With the uniform density `segment` is the first
           score that is nearer to t than τ/2, `rest` what t is above it, and `slope` how many are
           so near

For laplace Triton has kernels of its own; for uniform the reference calls those of F-sums.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels import _triton
from softorder.kernels._density_numbers import is_walked
from softorder.kernels._operators import Fused, Pair
from softorder.kernels.order import cpu, reference

_gpu = _triton.Module("softorder.kernels.order.triton")


def _keep(scores: Tensor, found: Sequence[Tensor], density: int) -> Sequence[Tensor]:
    return found[1:]


def _fake_rank(
    scores: Tensor, temperature: Tensor, descending: bool, density: int
) -> tuple[Tensor, Tensor, Tensor]:
    ranks, values = (scores.new_empty(scores.shape) for _ in range(2))
    return ranks, values, scores.new_empty(scores.shape, dtype=torch.int32)


def _fake_sort(
    scores: Tensor, temperature: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    t, values, rest, slope = (scores.new_empty(scores.shape) for _ in range(4))
    order, segment = (scores.new_empty(scores.shape, dtype=torch.int32) for _ in range(2))
    return t, values, order, segment, rest, slope


rank = Fused(
    "soft_rank",
    options="int density",
    outputs=3,
    reference=Pair(reference.rank, reference.rank_vjp),
    cpu=Pair(cpu.rank, cpu.rank_vjp),
    triton=Pair(_gpu.rank, _gpu.rank_vjp),
    keep=_keep,
    fake=_fake_rank,
    compiled=is_walked,
    learns_temperature=True,
)
sort = Fused(
    "soft_sort",
    options="int density",
    outputs=6,
    reference=Pair(reference.sort, reference.sort_vjp),
    cpu=Pair(cpu.sort, cpu.sort_vjp),
    triton=Pair(_gpu.sort, _gpu.sort_vjp),
    keep=_keep,
    fake=_fake_sort,
    compiled=is_walked,
    learns_temperature=True,
)
