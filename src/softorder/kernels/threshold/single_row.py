"""One easy row: the steps of the solver without their safeguards, in plain numbers.

A short row costs as much as it needs calls of torch and NumPy, whatever its length. But most rows
need no bracket and no model, only a guess from their moments and a few steps that shrink by
themselves: torch for the sums, Python for the rest. What is not easy is left to the solver.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from softorder.densities import Density, Laplace, UserDensity
from softorder.kernels.threshold.state import parted
from softorder.kernels.threshold.sums import NUMPY, Array, totals

Numbers = float | Array

SELECTION = 2  # passes that a selection counts as

_LOST = (ArithmeticError, ValueError)  # 1/0, log 0: no score is near
_BELL = NormalDist()
_MOST_TURNS = 6
_FAR = 4.0  # a step so long (in τ) calls for new distances: they are exact near b only


class Row(NamedTuple):
    """A row of scores and its problem."""

    x: Tensor
    k: float
    tau: float
    law: Density
    short: dict[int, float]  # steps of second or third order that may be the last


class Place(NamedTuple):
    """b = centre + rest, whether it is the root, and how many passes were needed to get there."""

    centre: float
    rest: float
    sweeps: float
    solved: bool = False


def improve(row: Row, start: Place | None) -> Place | None:
    """The root, or the last place that may serve as a start; None if nothing was found."""
    if row.law.decay != "exponential" or not 0 < row.k < len(row.x):
        return start
    try:
        start = start or _guess(row)
        try:
            return _from(start, row)
        except _LOST:
            start = _among_few(row, start.sweeps + 1)
            return _from(start, row)
    except _LOST:
        return start and start._replace(sweeps=start.sweeps + 1)


def is_sharp(deviation: Numbers, k: Numbers, tau: Numbers) -> Any:
    """Whether b depends on a few scores rather than on the moments of all."""
    return deviation > np.minimum(16, k) * tau


def guess(bell: Numbers, deviation: Numbers, own: Numbers, tau: Numbers, law: Density) -> Array:
    """How far b is from the mean: the smoothed row as a sum of two variables, bell and F.

    Their quantiles add like errors; but far out in an exponential tail of F the bell only adds
    its cumulant.
    """
    size = np.hypot(deviation * bell, own)
    if law.decay == "exponential":
        cumulant = 0.5 * deviation / tau * deviation
        size = np.where(own > cumulant + deviation, own + cumulant, size)
    return np.copysign(size, bell) - law.middle * tau


def _guess(row: Row) -> Place:
    x, n, share = row.x, len(row.x), row.k / len(row.x)
    mean = x.sum(dtype=torch.float64).item() / n
    deviation = 1.25 * (x - mean).abs_().sum(dtype=torch.float64).item() / n
    if is_sharp(deviation, min(row.k, n - row.k), row.tau):
        return _among_few(row, 1)
    own = row.tau * abs(row.law.middle - _quantile(row.law, share))
    bell = -_BELL.inv_cdf(share)
    return Place(mean, float(guess(bell, deviation, own, row.tau, row.law)), 1)


def _among_few(row: Row, sweeps: float) -> Place:
    """Between the two scores that a hard choice would part, if that is near enough for F."""
    if not isinstance(row.law, Laplace):  # whose steps alone are exact from score to score
        return Place(math.nan, math.nan, sweeps)
    whole = math.floor(row.k)
    lowest, above = parted(row.x, whole).tolist()
    offset = 0.5 * (above - lowest)
    if row.k != whole:
        offset = -row.tau * _quantile(row.law, row.k - whole)
    return Place(lowest, offset, sweeps + SELECTION)


def _quantile(law: Density, share: float) -> float:
    return _compute_quantile(law, share) if isinstance(law, UserDensity) else _known(law, share)


def _compute_quantile(law: Density, share: float) -> float:
    return law.quantile(torch.tensor(share, dtype=torch.float64, device="cpu")).item()


_known = lru_cache(maxsize=256)(_compute_quantile)  # k and n often stay the same


def _from(start: Place, row: Row) -> Place:
    if math.isnan(start.centre):
        return start
    place, size = start, math.inf
    for _ in range(_MOST_TURNS):
        if size > _FAR:  # also before the first step
            place = split(place, row.x.dtype)
            z, at = _distance(place, row), 0.0
        step, order, rate, reach = _step(z - at, row)
        size, before = abs(step) * rate, size
        if size > reach:
            raise OverflowError("no score is near")
        if not size < 0.5 * before:
            return place._replace(sweeps=place.sweeps + 1)
        at += step
        rest, solved = place.rest + step * row.tau, size <= row.short[order]
        place = Place(place.centre, rest, place.sweeps + 1, solved)
        if solved:
            break
    return place


def split(place: Place, dtype: torch.dtype) -> Place:
    """The same place with the centre next to it, both numbers in a dtype."""
    b = place.centre + place.rest
    centre = float(NUMPY[dtype](b))
    return place._replace(centre=centre, rest=(b - centre) + ((place.centre - b) + place.rest))


def _distance(place: Place, row: Row) -> Tensor:
    z = (row.x - place.centre).sub_(place.rest)
    return z.mul_(min(1 / row.tau, torch.finfo(z.dtype).max))


class Step(NamedTuple):
    """How far to move b (in τ), and how good that is."""

    by: float
    order: int
    rate: float  # how fast the sums change with b
    reach: float  # a longer step, times the rate, says nothing but that it is long


def _step(u: Tensor, row: Row) -> Step:
    side, *values = row.law.sides(u)
    known = [v for v in dict.fromkeys(values) if v is not None]  # Laplace: all are the same
    above, *both = totals(side, known).tolist()
    plain, signed = both[: len(known)], both[len(known) :]
    lower = [0.5 * (a - b) for a, b in zip(plain, signed, strict=True)]
    upper = [0.5 * (a + b) for a, b in zip(plain, signed, strict=True)]
    extra = 0.5 * (len(u) + above) - row.k
    if len(known) == 1:
        return Step(_exponential_step(extra, lower[0], upper[0]), 2, 1.0, 40.0)
    pdf = plain[1]
    rate = pdf / plain[0]
    newton = (extra + (lower[0] - upper[0])) / pdf
    if len(known) == 2:
        return Step(newton, 2, rate, 1.0)
    correction = 0.5 * newton / pdf * (lower[2] - upper[2])
    return Step(newton / (1 - correction), 3, rate, 1.0)


def _exponential_step(extra: float, lower: float, upper: float) -> float:
    """Both tail sums as exponentials in b: the closed form of LapSum, until b passes a score."""
    root = math.hypot(extra, 2 * math.sqrt(lower) * math.sqrt(upper))
    if extra > 0:
        return math.log((extra + root) / (2 * upper))
    return math.log(2 * lower / (root - extra))
