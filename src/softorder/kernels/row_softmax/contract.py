"""Rows of SoftSort's and NeuralSort's permutations.

Contract. `scores` is float32 or float64, rows on the last axis; `temperature` is float64 and
broadcasts over the rows. Of every row come the first k rows of its permutation, (..., k, n),
completed by what infinities and NaN mean (kernels/sort/completion.py); for the way back, the places
of its first finite scores in order (at least k of them, or all), and their number.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels import _triton
from softorder.kernels._operators import Fused, Pair
from softorder.kernels.row_softmax import cpu, reference

_gpu = _triton.Module("softorder.kernels.row_softmax.triton")


def _keep(scores: Tensor, found: Sequence[Tensor], family: str, k: int) -> Sequence[Tensor]:
    return scores, *found


def _fake(
    scores: Tensor, temperature: Tensor, descending: bool, family: str, k: int
) -> tuple[Tensor, Tensor, Tensor]:
    *rows, n = scores.shape
    order = scores.new_empty(scores.shape, dtype=torch.int32)
    return scores.new_empty((*rows, k, n)), order, scores.new_empty(rows, dtype=torch.int32)


rows = Fused(
    "row_softmax",
    options="str family, int k",
    outputs=3,
    reference=Pair(reference.rows, reference.vjp),
    cpu=Pair(cpu.rows, cpu.vjp),
    triton=Pair(_gpu.rows, _gpu.vjp),
    keep=_keep,
    fake=_fake,
)
