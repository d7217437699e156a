"""How surely every score has its place: -log of its share of that place in a soft permutation.

    -log Σ_j P[j, i], j = first_i..last_i      P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ)

which takes the two thresholds between which a score should be, FSum(t) = first and last + 1.

Contract. `scores` is float32 or float64, rows on the last axis; `temperature` is float64 and
broadcasts over the rows; `first` and `last` are int64 and shaped as the scores, places from 0. The
losses are float64. Where `first` is negative, and where the score is -inf, there is no loss: 0.
What is +inf shares the last places with its equals; a place behind all that take part has the loss
inf, without a gradient, and so has one where P is 0; NaN spoils its row. The sorted scores and
their indices come along.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels._density_numbers import is_walked
from softorder.kernels._operators import Fused, Pair
from softorder.kernels.placement import cpu, reference


def _keep(
    scores: Tensor, found: Sequence[Tensor], first: Tensor, last: Tensor, density: int
) -> Sequence[Tensor]:
    return scores, *found[1:], first, last


def _fake(
    scores: Tensor, temperature: Tensor, first: Tensor, last: Tensor, descending: bool, density: int
) -> tuple[Tensor, Tensor, Tensor]:
    losses, order = (scores.new_empty(scores.shape, dtype=d) for d in (torch.float64, torch.int32))
    return losses, scores.new_empty(scores.shape), order


placement = Fused(
    "placement",
    tensors=("first", "last"),
    options="int density",
    outputs=3,
    reference=Pair(reference.losses, reference.vjp),
    cpu=Pair(cpu.losses, cpu.vjp),
    compiled=is_walked,
    keep=_keep,
    fake=_fake,
    learns_temperature=True,
)
