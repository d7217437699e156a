"""From the sums of one pass to the next threshold."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch

from softorder.densities import Density
from softorder.kernels.threshold.state import Rows
from softorder.kernels.threshold.sums import Array, Side, Sums

_MODEL_TURNS = 40
_CROWD = 4  # scores so near to b (in τ) are met by a smooth slope, not one by one


def next_step(sums: Sums, rows: Rows, law: Density) -> tuple[Array, int]:
    """How far to move b, in units of τ, and the order of the step near the root."""
    if sums.lower.pdf is sums.lower.tail:
        return _exponential_step(sums, rows.k), 2
    residual, pdf = sums.residual(rows.k), sums.pdf()
    newton = residual / pdf
    lower, upper = sums.lower.drop, sums.upper.drop
    if law.decay == "none":  # linear in pieces
        near, order, far = newton, 2, ~(np.abs(sums.excess(rows.k)) < 2)
    elif lower is None or upper is None:
        near, order, far = newton, 2, ~(np.abs(newton) * sums.rate() < 0.1)
    else:  # Halley's, where his correction is one
        correction = 0.5 * newton / pdf * (lower - upper)
        near, order = newton / (1 - correction), 3
        far = ~((np.abs(near) * sums.rate() < 0.5) & (np.abs(correction) < 0.5))
    if law.decay == "hyperbola":  # a crowd ahead makes a smooth slope, no single steps
        crowded = far & (_ahead(sums, rows.k) < _CROWD) & (pdf > 0.05)
        secant = residual / (rows.residual - residual) * rows.by / rows.tau
        smooth = np.where(secant * residual > 0, secant, newton)
        near, far = np.where(crowded, smooth, near), far & ~crowded
    return np.where(far, _far_step(sums, rows, newton, law), near) if far.any() else near, order


def _far_step(sums: Sums, rows: Rows, newton: Array, law: Density) -> Array:
    """The root of a model that fits far away too, in units of τ; ±inf if it is out of bounds.

    It is solved in logarithms, where it is nearly linear, by Newton's steps inside the bracket.
    """
    extra, rate = sums.above - rows.k, sums.rate()
    surplus, deficit = np.maximum(extra, 0), np.maximum(-extra, 0)
    lower, upper = (Model.of(side, law) for side in (sums.lower, sums.upper))
    low, high, t = rows.left / rows.tau, rows.right / rows.tau, np.zeros_like(extra)
    for _ in range(_MODEL_TURNS):
        (more, fall), (less, rise) = lower.at(t), upper.at(-t)
        more, less = more + surplus, less + deficit
        excess = np.log(more) - np.log(less)
        low, high = np.where(excess > 0, t, low), np.where(excess < 0, t, high)
        goal = t + excess / (fall / more + rise / less)
        goal = np.where((goal > low) & (goal < high), goal, 0.5 * (low + high))
        moved, t = np.abs(goal - t), goal
        if not ((moved * rate > 1e-3) | (np.abs(excess) > 0.05)).any():
            break
    behind = newton if law.decay == "none" else np.copysign(math.inf, newton)
    return np.where(np.abs(excess) < 0.1, t, behind)


def _ahead(sums: Sums, k: Array) -> Array:
    """The distance of the first score that b would meet on its way to the root."""
    assert sums.lower.nearest is not None
    assert sums.upper.nearest is not None
    return np.where(sums.residual(k) > 0, sums.upper.nearest, sums.lower.nearest)


def _exponential_step(sums: Sums, k: Array) -> Array:
    """Both tail sums as exponentials in b: the closed form of LapSum, until b passes a score."""
    lower, upper, extra = sums.lower.tail, sums.upper.tail, sums.above - k
    root = np.hypot(extra, 2 * np.sqrt(lower) * np.sqrt(upper))
    ratio = np.where(extra > 0, (extra + root) / (2 * upper), 2 * lower / (root - extra))
    return np.where(extra == 0, 0.5 * (np.log(lower) - np.log(upper)), np.log(ratio))


class Model(NamedTuple):
    """How the tail sum of one side continues when b moves away from it by t.

    As a power of the distance, S (1 + eλt)^(-1/e), with the e and λ that give it its first and
    second derivative: e = 0 is an exponential, e = 1 the hyperbola of Cauchy's tails, e = -1/2 the
    parabola at the end of a uniform row. Heavy tails hide the nearest score behind the crowd of
    the others: it is taken out of the sums and counted exactly.
    """

    height: Array
    rate: Array
    bend: Array
    nearest: Array | None
    weight: Array  # how many scores are there

    @staticmethod
    def of(side: Side, law: Density) -> Model:
        tail, pdf, drop, nearest = side
        weight = np.ones_like(tail)
        if nearest is not None:
            there = law.sides(torch.from_numpy(nearest.copy()))[1:]
            own = np.array([v.numpy() for v in there if v is not None])
            sums = np.array(side[:3])
            # ties count together: they show in Σ -f', which falls fastest with distance
            ties = sums[2] / own[2]
            weight = np.where(np.abs(ties - np.rint(ties)) < 1e-3, np.maximum(np.rint(ties), 1), 1)
            tail, pdf, drop = np.maximum(sums - weight * own, 0)
        rate = np.where(tail > 0, pdf / tail, 0)
        if drop is None:
            return Model(tail, rate, np.zeros_like(rate), nearest, weight)
        # without a tail, `drop` is Σ F²: are all at one place, or spread to the end?
        none = law.decay == "none"
        bend = 1.5 * (drop / tail * rate - 1) - 1 if none else drop / pdf / rate - 1
        return Model(tail, rate, np.clip(np.nan_to_num(bend), -1, 9), nearest, weight)

    def at(self, t: Array) -> tuple[Array, Array]:
        """The sum and minus its slope."""
        straight = np.abs(self.bend) < 1e-6
        base = 1 + self.bend * self.rate * t
        exponent = np.log(base) / np.where(straight, 1, self.bend)
        value = self.height * np.exp(-np.where(straight, self.rate * t, exponent))
        value = np.where(base > 0, value, np.where(self.bend > 0, math.inf, 0.0))
        slope = np.where(base > 0, value * self.rate / base, 0.0)
        if self.nearest is None:
            return value, slope
        a, weight = self.nearest + t, self.weight / math.pi
        return value + weight * np.arctan2(1, a), slope + weight / (1 + a * a)
