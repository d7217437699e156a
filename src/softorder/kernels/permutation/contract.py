"""Rows of soft permutations, for every density that is built in.

    P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ)    with    FSum(t_j) = j

Contract. `scores` is float32 or float64, rows on the last axis; `temperature` is float64 and
broadcasts over the rows. The first k rows come with the k + 1 thresholds between which they lie, in
float64 and as sums centre + rest. Infinite scores have no part in these: the rows and columns of
what is certain (+inf) and of what is absent (-inf) are put in afterwards. NaN spoils its row.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels import _triton
from softorder.kernels._density_numbers import COMPILED
from softorder.kernels._operators import Fused, Pair
from softorder.kernels.permutation import cpu, reference

_gpu = _triton.Module("softorder.kernels.permutation.triton")


def _keep(scores: Tensor, found: Sequence[Tensor], density: int, k: int) -> Sequence[Tensor]:
    return scores, *found[1:]


def _fake(
    scores: Tensor, temperature: Tensor, descending: bool, density: int, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    *rows, n = scores.shape
    centre, rest = (scores.new_empty((*rows, k + 1), dtype=torch.float64) for _ in range(2))
    return scores.new_empty((*rows, k, n)), centre, rest


permutation = Fused(
    "soft_permutation",
    options="int density, int k",
    outputs=3,
    reference=Pair(reference.rows, reference.vjp),
    cpu=Pair(cpu.rows, cpu.vjp),
    triton=Pair(_gpu.rows, _gpu.vjp),
    compiled=lambda density, k: density < COMPILED,
    keep=_keep,
    fake=_fake,
)
