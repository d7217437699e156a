"""How surely every score has its place: -log of its share of that place in a soft permutation.

    -log Σ_j P[j, i], j = first_i..last_i      P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ)

which takes the two thresholds between which a score should be, FSum(t) = first and last + 1.

Contract. `scores` is float32 or float64, rows on the last axis; `temperature` is float64 and
broadcasts over the rows; `first` and `last` are int64 and shaped as the scores, places from 0. The
losses are float64. Where `first` is negative, and where the score is -inf, there is no loss: 0.
What is +inf shares the last places with its equals; a place behind all that take part has the loss
inf, without a gradient, and so has one where P is 0; NaN spoils its row. The sorted scores and
their indices come along, and the thresholds as `rest`, `slope` and `segment` tell them, in float64
and int32 (kernels/order): where the first segment of a row is -1, the way back finds them anew. For
laplace, which does not need them there, slopes are empty.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder.kernels._density_numbers import COMPILED
from softorder.kernels._operators import Fused, Pair
from softorder.kernels.placement import cpu, reference


def _keep(
    scores: Tensor, found: Sequence[Tensor], first: Tensor, last: Tensor, density: int
) -> Sequence[Tensor]:
    return scores, *found[1:], first, last


def _fake(
    scores: Tensor, temperature: Tensor, first: Tensor, last: Tensor, descending: bool, density: int
) -> tuple[Tensor, ...]:
    losses, rest = (scores.new_empty(scores.shape, dtype=torch.float64) for _ in range(2))
    order, segment = (scores.new_empty(scores.shape, dtype=torch.int32) for _ in range(2))
    slope = losses.new_empty(cpu.slopes_of(scores, density))
    return losses, scores.new_empty(scores.shape), order, rest, slope, segment


placement = Fused(
    "placement",
    tensors=("first", "last"),
    options="int density",
    outputs=6,
    reference=Pair(reference.losses, reference.vjp),
    cpu=Pair(cpu.losses, cpu.vjp),
    compiled=lambda density: density < COMPILED,
    keep=_keep,
    fake=_fake,
    learns_temperature=True,
)
