"""torch.sort, which every device has."""

from __future__ import annotations

import torch
from torch import Tensor


def sort(scores: Tensor) -> tuple[Tensor, Tensor]:
    """The last axis in ascending order, and the indices."""
    values, order = torch.sort(scores, dim=-1, stable=True)
    return values, order
