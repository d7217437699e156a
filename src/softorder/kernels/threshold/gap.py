"""A threshold between two scores so far apart that the sum is k anywhere between them.

Any b in the gap fits the sum: the one that balances the logarithms of both tails fits log p too.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels.shards import WHOLE, Whole
from softorder.kernels.threshold.sums import Sums

_TURNS = 8
_CLOSE = 1e-10  # of the gap: steps converge quadratically, and the next would be 1e-20


def in_gap(sums: Sums, law: Density) -> Tensor:
    """Whether exactly k scores are above b, and what one side adds is too small to be told."""
    few = sums.lower[0] + sums.upper[0] < (0.5 if law.decay != "none" else 0.0)
    least = torch.stack([*sums.lower[:2], *sums.upper[:2]]).amin(0)
    return (sums.extra == 0) & few & (least <= sums.tiny)


def faint(sums: Sums, law: Density) -> Any:
    """Whether b may be in such a gap: the tails of one side have lost their digits."""
    if law.decay == "none":
        return False
    return (sums.extra == 0) & ((sums.lower[0] <= sums.tiny) | (sums.upper[0] <= sums.tiny))


def balance(
    x: Tensor,
    tau: Tensor,
    centre: Tensor,
    rest: Tensor,
    passes: Tensor,
    law: Density,
    at_hand: bool,
    shards: Whole = WHOLE,
) -> Tensor:
    """The answer where the logarithms of the two tails, below and above b, are equal.

    The middle of the gap, if the law does not know its logarithms.
    """
    tau = tau.unsqueeze(-1)
    below = (x - centre.to(x.dtype).unsqueeze(-1)) < rest.to(x.dtype).unsqueeze(-1)
    x = x.to(tau.dtype)
    ends = torch.where(below, x, -math.inf), torch.where(below, -math.inf, -x)
    low, high = shards.most(torch.stack([end.amax(-1, keepdim=True) for end in ends]))
    high = -high
    gap, at = high - low, 0.5 * (high - low)
    if law.decay == "hyperbola":  # has no unit: in a larger one nothing overflows
        tau = torch.maximum(tau, 1e-200 * gap)
    beyond = torch.where(below, low - x, x - high) / tau
    for _ in range(_TURNS if law.logarithmic else 0):
        a = beyond + torch.where(below, at, gap - at) / tau
        log_tail = law.log_tail(a)
        slope = torch.exp(law.log_pdf(a) - log_tail).nan_to_num(0.0, 0.0, 0.0)
        tops = law.log_tail(torch.stack([at, gap - at]) / tau)  # of the nearest on either side
        lower, lower_rate, upper, upper_rate = _log_sums(log_tail, slope, below, tops, shards)
        if law.decay == "hyperbola":  # A/at and B/(gap - at) balance at once
            most = torch.maximum(lower, upper)
            below_it, above_it = (lower - most).exp() * at, (upper - most).exp() * (gap - at)
            by = gap * (below_it / (below_it + above_it)) - at
        else:
            by = (lower - upper) / (lower_rate + upper_rate) * tau
        by = torch.where(by.isfinite(), by, 0.0)  # beside a² how many they are does not count
        at = torch.minimum((at + by).clamp(min=0), gap)
        passes = passes + 1
        if at_hand and (by.abs() <= _CLOSE * gap).all():
            break
    return torch.stack([low.squeeze(-1), at.squeeze(-1), passes])


def _log_sums(
    log_tail: Tensor, slope: Tensor, below: Tensor, tops: Tensor, shards: Whole
) -> list[Tensor]:
    """log Σ F(-a) over either side of the gap, from its largest term, and minus its slope in a."""
    parts = []
    for side, top in zip((below, ~below), tops, strict=True):
        weight = torch.where(side, torch.exp(log_tail - top), 0.0)
        parts += [weight.sum(-1, keepdim=True), (weight * slope).sum(-1, keepdim=True)]
    (lower, fall), (upper, rise) = shards.add(torch.stack(parts)).unflatten(0, (2, 2))
    return [tops[0] + lower.log(), fall / lower, tops[1] + upper.log(), rise / upper]
