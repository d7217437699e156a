"""One pass over the scores: the sums over F from which the next threshold is found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softorder.densities import Density

Array = NDArray[Any]

NUMPY = {torch.float32: np.float32, torch.float64: np.float64}
_SMALL = 32768  # up to here one long sum is faster than several short ones


class Side(NamedTuple):
    """Sums over the scores on one side of b, for every row."""

    tail: Array  # Σ F(-|u|)
    pdf: Array  # Σ f(u)
    drop: Array | None  # Σ -f'(|u|), if the density tells
    nearest: Array | None  # the smallest |u|, where it is worth knowing


class Sums(NamedTuple):
    """What one pass learns about Σ F(u).

    Below and above b are summed apart, as tails, so that the residual keeps its relative accuracy
    when almost every p is 0 or 1.
    """

    above: Array  # how many scores are above b
    lower: Side
    upper: Side

    def residual(self, k: Array) -> Array:
        return (self.above - k) + (self.lower.tail - self.upper.tail)

    def excess(self, k: Array) -> Array:
        """log of what is above k over what is below: 0 at the root, and nearly linear in b."""
        extra = self.above - k
        surplus, deficit = np.maximum(extra, 0), np.maximum(-extra, 0)
        ratio = np.log1p(self.residual(k) / (deficit + self.upper.tail))
        far = np.log(surplus + self.lower.tail) - np.log(deficit + self.upper.tail)
        return np.where(np.abs(far) < 0.1, ratio, far)

    def pdf(self) -> Array:
        return self.lower.pdf + self.upper.pdf

    def rate(self) -> Array:
        """How fast things change with b: a step is short when step · rate is."""
        rate = self.pdf() / (self.lower.tail + self.upper.tail)
        if self.lower.nearest is None or self.upper.nearest is None:
            return rate
        return np.maximum(rate, 1 / (1 + np.minimum(self.lower.nearest, self.upper.nearest)))


def sweep(u: Tensor, law: Density) -> Sums:
    """The sums of every row of u = (x - b)/τ, which is overwritten."""
    nearest = _nearest(u) if law.decay == "hyperbola" else (None, None)
    side, *values = law.sides(u)
    known = [v for v in dict.fromkeys(values) if v is not None]  # Laplace: all are the same
    above, *both = totals(side, known).cpu().numpy()
    plain, signed = np.split(np.array(both), 2)
    lower, upper = np.maximum(0.5 * (plain - signed), 0), np.maximum(0.5 * (plain + signed), 0)
    return Sums(0.5 * (u.shape[-1] + above), _side(lower, nearest[0]), _side(upper, nearest[1]))


def totals(side: Tensor, values: list[Tensor]) -> Tensor:
    """Sums in float64 of side, of the values, and of the values times side; overwrites them."""
    if side.numel() <= _SMALL:
        return torch.stack([side, *values, *(v * side for v in values)]).sum(
            -1, dtype=torch.float64
        )
    plain = [v.sum(-1, dtype=torch.float64) for v in (side, *values)]
    return torch.stack(plain + [v.mul_(side).sum(-1, dtype=torch.float64) for v in values])


def _side(sums: Array, nearest: Array | None) -> Side:
    tail = sums[0]
    if len(sums) == 1:  # Laplace: f = F(-|u|) = -f'
        return Side(tail, tail, tail, nearest)
    return Side(tail, sums[1], sums[2] if len(sums) > 2 else None, nearest)


def _nearest(u: Tensor) -> tuple[Array, Array]:
    """The distances of the nearest scores below and above; inf where there is none."""
    low, high = torch.aminmax(u.reciprocal(), dim=-1)
    near = torch.stack([-low, high]).clamp_(min=0).double().reciprocal_().cpu().numpy()
    return near[0], near[1]
