"""Choices of exactly k: what layers do in use, and what they show in a straight-through pass."""

from __future__ import annotations

import torch
from torch import Tensor


def best(scores: Tensor, k: int, dim: int = -1) -> Tensor:
    """1 for k of the largest scores and 0 for the others; of equal ones, those of torch.topk.

    `so.hard.topk` shares what ties, which is the limit of the soft one; here k are k.
    """
    scores = scores.detach()
    places = scores.topk(k, dim).indices
    return torch.zeros_like(scores).scatter(dim, places, 1.0)


def straight_through(hard: Tensor, soft: Tensor) -> Tensor:
    """The value of the one with the derivative of the other."""
    return hard.detach() + (soft - soft.detach())
