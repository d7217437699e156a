"""What a score has between two thresholds: F(above) - F(below), never as a difference of two ones.

A threshold t = centre + rest may be infinite. Tails F(-|u|) are exact on both sides, so the
difference is taken of tails where both thresholds lie on the same side of the score.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.densities import Density


class Edge(NamedTuple):
    """A threshold t as seen from a score x: |u| = |t - x|/τ, and on which side it lies."""

    distance: Tensor  # 0 where it is infinite
    finite: Tensor
    right: Tensor  # t > x

    def rows(self, chosen: slice) -> Edge:
        """Some of the thresholds, when they are on the last but one axis."""
        return Edge(*(value[..., chosen, :] for value in self))

    def beside(self, others: Tensor) -> Edge:
        """The same but for those, which are put where nothing can go wrong."""
        return self._replace(distance=torch.where(others, 0.0, self.distance))

    def tail(self, density: Density) -> Tensor:
        return torch.where(self.finite, density.tail(self.distance), 0.0)

    def log_tail(self, density: Density) -> Tensor:
        return torch.where(self.finite, density.log_tail(self.distance), -math.inf)


def edge(centre: Tensor, rest: Tensor, scores: Tensor, scale: Tensor) -> Edge:
    """Broadcasts thresholds against scores."""
    finite = centre.isfinite() & scores.isfinite()
    most = torch.finfo(scores.dtype).max  # beyond, logarithms of tails would be infinite too soon
    u = (torch.where(finite, (centre - scores) + rest, 0.0) * scale).clamp(-most, most)
    right = torch.where(finite, u > 0, centre > 0)
    return Edge(torch.where(right, u, -u), finite, right)


def share(density: Density, below: Edge, above: Edge) -> Tensor:
    """F(above) - F(below), in [0, 1]."""
    low, high = below.tail(density), above.tail(density)
    astride = 1 - (low + high)
    aside = torch.where(below.right, low - high, high - low)
    return torch.where(above.right & ~below.right, astride, aside).clamp(min=0)


def log_share(density: Density, below: Edge, above: Edge) -> Tensor:
    """Its logarithm, exact however far away the score is."""
    straddles = above.right & ~below.right
    both = torch.where(straddles, below.tail(density) + above.tail(density), 0.0)
    near, far = _in_turn(below.right, below, above), _in_turn(below.right, above, below)
    aside = _log_difference(density, near.beside(straddles), far.beside(straddles))
    return torch.where(straddles, torch.log1p(-both), aside)


def _in_turn(right: Tensor, one: Edge, other: Edge) -> Edge:
    return Edge(*(torch.where(right, *pair) for pair in zip(one, other, strict=True)))


def _log_difference(density: Density, near: Edge, far: Edge) -> Tensor:
    """log(F(-a) - F(-a')) for a <= a', either of them perhaps infinite."""
    top = near.log_tail(density)
    some = near.finite & far.finite & (top > -math.inf)
    drop = torch.where(some, density.log_fall(near.distance, far.distance), math.inf)
    seen = drop.detach() < -math.log(torch.finfo(top.dtype).tiny)
    drop = torch.where(seen, drop, 1.0)
    drop = drop.clamp(min=torch.finfo(top.dtype).eps)  # thresholds that rounding made one
    rest = torch.where(drop < 1, torch.log(-torch.expm1(-drop)), torch.log1p(-torch.exp(-drop)))
    return torch.where(seen, top + rest, top)
