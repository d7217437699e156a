"""Discounted cumulative gains: what a relevance is worth, and what the best order has."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels.sort import sort

GAINS = ("linear", "exponential")
_MANY = (
    1 << 14
)  # gains, from which on torch's sort, which has derivatives, takes several times as long


def gains(relevance: Tensor, kind: str, weights: Tensor | None = None) -> Tensor:
    """The relevance itself, or 2^relevance - 1, times how much it is worth to find the element."""
    _check.targets.no_negatives("relevance", relevance)
    found = relevance if kind == "linear" else torch.expm1(relevance * math.log(2))
    return found if weights is None else weights * found


def discounts(n: int, like: Tensor) -> Tensor:
    """1/log2(1 + place) for the places 1..n."""
    places = torch.arange(1, 1 + n, device=like.device, dtype=like.dtype)
    return 1 / torch.log2(1 + places)


def best_sum(gain: Tensor, k: int | None) -> Tensor:
    """The discounted gains of the first k places in the best order; all places without a k."""
    n = gain.shape[-1]
    k = n if k is None else min(k, n)
    many = gain.numel() > _MANY and _check.at_hand(gain) and not gain.requires_grad
    ascending = sort(gain).values if many else gain.sort(-1).values
    return (ascending[..., n - k :] * discounts(k, gain).flip(-1)).sum(-1)


def missing(found: Tensor, best: Tensor) -> tuple[Tensor, Tensor]:
    """1 - found/best, and whether there is anything to be found."""
    counts = best > 0
    return 1 - found / torch.where(counts, best, 1.0), counts
