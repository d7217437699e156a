"""Choices of exactly k: what layers do in use."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.ops import soft_topk

_COLD = 1e-6  # a temperature, as part of the mean of |scores|


def best(scores: Tensor, k: int, dim: int = -1) -> Tensor:
    """1 for k of the largest scores and 0 for the others; of equal ones, those of torch.topk.

    `so.hard.topk` shares what ties, which is the limit of the soft one; here k are k.
    """
    scores = scores.detach()
    places = scores.topk(k, dim).indices
    return torch.zeros_like(scores).scatter(dim, places, 1.0)


@torch.no_grad()
def edge(scores: Tensor, k: int) -> Tensor:
    """A number above which k of all scores lie, ties aside: the middle of the gap below them.

    The root of Σ F((scores - b)/τ) = k as τ → 0. A cold soft top-k finds the gap sooner than an
    order would; scores that differ by less than its temperature may end up on either side.
    """
    values = scores.detach().flatten().float()
    cold = (_COLD * values.abs().mean()).clamp(min=torch.finfo(torch.float32).tiny)
    chosen = soft_topk(values, k, temperature=cold) > 0.5
    above = torch.where(chosen, values, torch.inf).amin()
    below = torch.where(chosen, -torch.inf, values).amax()
    middle = torch.where(above == torch.inf, below, 0.5 * (above + below))  # if all tie, at them
    everything = torch.nextafter(above, torch.full_like(above, -torch.inf))
    return torch.where(below == -torch.inf, everything, middle)
