"""A threshold between two scores so far apart that the sum is k anywhere between them.

Any b in the gap fits the sum: the one that balances the logarithms of both tails fits log p too.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.densities import Density
from softorder.kernels.threshold.state import Rows
from softorder.kernels.threshold.sums import Array, Sums


def in_gap(sums: Sums, k: Array, law: Density) -> Array:
    """Whether exactly k scores are above b, and what the others add is too small to be told."""
    lower, upper = sums.lower, sums.upper
    if law.decay == "none":
        return (sums.above == k) & (lower.tail == 0) & (upper.tail == 0)
    small = lower.tail + upper.tail < 0.25
    return (sums.above == k) & ((lower.pdf == 0) | (upper.pdf == 0)) & small


def balance(rows: Rows, law: Density) -> None:
    """Puts b where the logarithms of the two tails, below and above the gap, are equal."""
    column = rows.columns(*rows.split())
    below = (rows.x - column[0]).sub_(column[1]) < 0
    x = rows.x.double()
    low = torch.where(below, x, -math.inf).amax(-1, keepdim=True)
    high = torch.where(below, math.inf, x).amin(-1, keepdim=True)
    tau = torch.from_numpy(rows.tau).to(x.device).unsqueeze(-1)
    beyond = torch.where(below, low - x, x - high) / tau
    gap, at = high - low, 0.5 * (high - low)
    turns = 8 if law.logarithmic else 0
    for _ in range(turns):
        a = beyond + torch.where(below, at, gap - at) / tau
        log_tail = law.log_tail(a)
        slope = torch.exp(law.log_pdf(a) - log_tail).nan_to_num(0.0, 0.0, 0.0)
        lower, lower_rate = _log_sum(log_tail, slope, below)
        upper, upper_rate = _log_sum(log_tail, slope, ~below)
        if law.decay == "hyperbola":  # A/at and B/(gap - at) balance at once
            ratio = torch.exp(lower - upper) * at / (gap - at)
            by = gap * (ratio / (1 + ratio)) - at
        else:
            by = (lower - upper) / (lower_rate + upper_rate) * tau
        at = torch.minimum((at + by).clamp(min=0), gap)
        rows.sweeps += 1
        if bool((by.abs() <= 1e-10 * gap).all()):  # quadratic: the next step would be 1e-20
            break
    rows.sweeps += 1
    rows.set_b(*(v.squeeze(-1).cpu().numpy() for v in (low, at)))


def _log_sum(log_tail: Tensor, slope: Tensor, side: Tensor) -> tuple[Tensor, Tensor]:
    """log Σ F(-a) over one side of the gap, and minus its slope in a."""
    total = torch.logsumexp(torch.where(side, log_tail, -math.inf), -1, keepdim=True)
    weight = torch.where(side, torch.exp(log_tail - total), 0.0)
    return total, (weight * slope).sum(-1, keepdim=True)
