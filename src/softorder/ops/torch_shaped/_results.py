"""What the calls give back, and what they share."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _check


class Selected(NamedTuple):
    """torch's values and indices, and how much every score has to do with them."""

    values: Tensor
    indices: Tensor
    weights: Tensor


class Ordered(NamedTuple):
    """torch's values and indices."""

    values: Tensor
    indices: Tensor


class OrderedWith(NamedTuple):
    """The same, and what belongs to the scores in their order."""

    values: Tensor
    indices: Tensor
    companions: Tensor


def learns(*values: object) -> bool:
    """Whether anyone may ask for a derivative."""
    some = any(isinstance(value, Tensor) and value.requires_grad for value in values)
    return (torch.is_grad_enabled() and some) or not _check.eager()


def mean(weights: Tensor, scores: Tensor, dim: int) -> Tensor:
    """Σ w x along dim; infinite where an infinite score has some weight."""
    finite = torch.where(scores.isfinite(), scores, 0.0)
    value = (weights * finite).sum(dim)
    certain = torch.where(weights.detach() > 0, scores.detach(), 0.0).sum(dim)
    return torch.where(certain.isfinite(), value, certain)


def only(scores: Tensor, mask: Tensor | None, last: float) -> Tensor:
    """The scores as torch should see them: what takes no part is where it comes last."""
    _check.mask(mask, scores)
    scores = scores.detach()
    return scores if mask is None else torch.where(mask, scores, math.copysign(math.inf, last))
