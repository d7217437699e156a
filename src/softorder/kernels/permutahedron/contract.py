"""Ranks and sorts by projection onto a permutahedron.

Contract. `scores` is float32 or float64, rows on the last axis; `temperature` is float64 and
broadcasts over the rows. -inf is absent and goes last, +inf is certain, NaN spoils its row. For the
way back come the sorted scores, their indices, and the first places of the blocks of the isotonic
regression: the vector-Jacobian product is one sum over each block. It takes the scores as they
came, and sorts them once more by these indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import ModuleType

import torch
from torch import Tensor

from softorder.kernels._operators import Fused, Pair
from softorder.kernels.permutahedron import cpu, reference


def _keep(
    scores: Tensor, found: Sequence[Tensor], entropic: bool, *, name: str
) -> Sequence[Tensor]:
    """Entropic ranks read themselves again on the way back."""
    result, _, *others = found
    own = [result] if entropic and name == "projected_rank" else []
    return [scores, *others, *own]


def _fake(
    scores: Tensor, temperature: Tensor, descending: bool, entropic: bool
) -> tuple[Tensor, ...]:
    result, values = (scores.new_empty(scores.shape) for _ in range(2))
    order, starts = (scores.new_empty(scores.shape, dtype=torch.int32) for _ in range(2))
    return result, values, order, starts


def _fused(name: str) -> Fused:
    def pair(backend: ModuleType) -> Pair:
        return Pair(partial(backend.project, name=name), partial(backend.vjp, name=name))

    return Fused(
        name,
        options="bool entropic",
        outputs=4,
        reference=pair(reference),
        cpu=pair(cpu),
        keep=partial(_keep, name=name),
        fake=_fake,
    )


rank = _fused("projected_rank")
sort = _fused("projected_sort")
