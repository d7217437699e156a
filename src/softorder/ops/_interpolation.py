"""Where a quantile lies among sorted scores, as torch.quantile says it by `interpolation`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

#: "inverse" is FSum⁻¹(q n); the others are torch's, at the place q (n - 1), counted from 0.
INTERPOLATIONS = ("inverse", "linear", "lower", "higher", "nearest", "midpoint")
_WHOLE = ("lower", "higher", "nearest")  # places that are never between two


class Places(NamedTuple):
    """Two places in a row, from 0, and how much of the second."""

    low: Tensor
    high: Tensor
    share: Tensor  # the only one with a derivative in q

    def at(self) -> Tensor:
        """One place, whole or between the two."""
        return self.low + self.share

    def between(self, low: Tensor, high: Tensor) -> Tensor:
        """The value there, of the values at both. No share of an infinity is 0."""
        gap = torch.where(low.isfinite() & high.isfinite(), high - low, 0.0)
        beyond = (low != high) & ~high.isfinite() & (self.share > 0)
        return torch.where(beyond, high, low + self.share * gap)


def places(q: Tensor, n: Tensor | int, interpolation: str) -> Places:
    """For quantiles q (..., m) of rows with n scores, a number or a column."""
    h = q * torch.as_tensor(n, device=q.device).sub(1).clamp(min=0)
    low, high = h.detach().floor(), h.detach().ceil()
    if interpolation in _WHOLE:
        place = {"lower": low, "higher": high, "nearest": h.detach().round()}[interpolation]
        return Places(place, place, torch.zeros_like(place))
    if interpolation == "midpoint":
        return Places(low, high, 0.5 * (high - low))
    return Places(low, high, h - low)


def interpolated(
    at: Callable[[Tensor], Tensor], q: Tensor, n: Tensor | int, interpolation: str
) -> Tensor:
    """torch's quantiles of rows whose values are known where FSum is a place and a half."""
    place = places(q, n, interpolation)
    low = at(place.low + 0.5)
    if interpolation in _WHOLE:
        return low
    return place.between(low, at(place.high + 0.5))


def present(scores: Tensor) -> Tensor:
    """How many scores of a row take part, as a column."""
    return (scores > -math.inf).sum(-1, keepdim=True)
