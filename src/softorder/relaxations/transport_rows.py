"""Which scores take part in a transport: not those that are infinite, nor those that round to 0."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels.sort import sort
from softorder.kernels.sort.rows import SortedRows, sort_rows
from softorder.kernels.transport.steps import reached, scale_of


def with_infinities(scores: Tensor) -> SortedRows | None:
    """What is to be known about scores that are not finite; None if there are none."""
    if _check.known_finite(scores):
        return None
    return sort_rows(scores)


def levels(
    scores: Tensor, rows: SortedRows | None, thresholds: int, descending: bool
) -> tuple[Tensor, Tensor]:
    """How many finite scores belong to the first 1, 2, ... places, and how many there are."""
    levels = torch.arange(1, thresholds + 1, dtype=scores.dtype, device=scores.device)
    levels = levels.expand(*scores.shape[:-1], thresholds)
    if rows is None or rows.finite is None or rows.present is None:
        return levels, torch.full_like(levels[..., :1], scores.shape[-1])
    if descending:
        levels = levels - (rows.present - rows.finite)  # +inf comes first
    count = rows.finite.to(scores.dtype)
    return levels.clamp(min=0).minimum(count), count


def near(
    gains: Tensor, levels: Tensor, temperature: Tensor, k: int, dtype: torch.dtype
) -> Tensor | None:
    """Which scores do not round to 0 in the first k places; None if there is no telling.

    A plan of other than k thresholds has a place for everybody.
    """
    if not _check.at_hand(gains) or gains.shape[-2] > 1 or k != levels.shape[-1]:
        return None
    values, order = sort(gains.squeeze(-2))
    scale = scale_of(temperature.detach()).squeeze(-1)
    count = reached(values, levels, scale, -math.log(torch.finfo(dtype).smallest_normal) + 20)
    return order[..., :count].unsqueeze(-2)
