"""What designs share: the phantom unit, and the choice of the largest keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _check


class Extended(NamedTuple):
    """Probabilities that sum to whole numbers; `phantom` if the last unit is one."""

    probs: Tensor
    size: Tensor
    phantom: bool


def extend(probs: Tensor, total: Tensor | None = None, whole: bool = False) -> Extended:
    """Adds a phantom unit of probability ⌈Σπ⌉ - Σπ, unless every row is seen to have a whole Σπ.

    A draw of ⌈Σπ⌉ units loses one of them if that is the phantom: it has ⌊Σπ⌋ + 1 with probability
    frac(Σπ), otherwise ⌊Σπ⌋, so that its mean size is Σπ. (Eq. 15 of the k-hot paper has the two
    cases exchanged.) `total` is Σπ where it is known, and `whole` says that this is a whole number;
    else a sum that is whole up to rounding is taken as whole.
    """
    if whole and total is not None:
        return Extended(probs, total.detach().to(probs.device).long(), phantom=False)
    slack = 0.0
    if total is None:
        total, slack = probs.sum(-1, dtype=torch.float64), torch.finfo(probs.dtype).eps
    total = total.detach().to(probs.device, torch.float64)
    nearest = total.round()
    near = (total - nearest).abs() <= slack * (1 + total)
    size = torch.where(near, nearest, total.ceil()).long().expand(probs.shape[:-1])
    if _check.at_hand(near) and near.all():
        return Extended(probs, size, phantom=False)
    missing = (size - probs.sum(-1, dtype=torch.float64)).clamp(0, 1)
    missing = torch.where(near, 0.0, missing).unsqueeze(-1).to(probs.dtype)
    return Extended(torch.cat([probs, missing], -1), size, phantom=True)


def log_odds(probs: Tensor, quantile: Callable[[Tensor], Tensor] = torch.logit) -> Tensor:
    """logit π, or another F⁻¹(π); ±inf, without a gradient, for units that are certain."""
    free = (probs > 0) & (probs < 1)
    certain = torch.where(probs > 0, torch.inf, -torch.inf)
    return torch.where(free, quantile(torch.where(free, probs, 0.5)), certain.to(probs.dtype))


def largest(keys: Tensor, size: Tensor) -> Tensor:
    """1 at the `size` largest keys of every row, else 0; in the dtype of the keys."""
    if not _check.at_hand(size):
        place = keys.argsort(-1, descending=True).argsort(-1)
        return (place < size.unsqueeze(-1)).to(keys.dtype)
    sizes = size.unique().tolist()
    most = int(max(sizes, default=0))
    chosen = keys.topk(most, -1, sorted=len(sizes) > 1).indices
    if len(sizes) <= 1:
        return torch.zeros_like(keys).scatter_(-1, chosen, 1.0)
    place = torch.arange(most, device=keys.device)
    taken = (place < size.unsqueeze(-1)).to(keys.dtype).expand_as(chosen)
    return torch.zeros_like(keys).scatter_(-1, chosen, taken)
