"""Soft top-k of rows of any length in float64, off by less than 1e-13.

The threshold is an unevaluated sum high + low of two doubles, and the sum of p is counted as
"how many are above the threshold" plus a sum of tails, so nothing cancels.
"""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import elementwise

from tests.oracles.densities import DENSITIES

_TINY = 1e-280  # below this sums of tails are compared by their logarithms


@dataclass(frozen=True)
class Rows:
    p: np.ndarray
    log_p: np.ndarray
    u: np.ndarray  # (x - b) / temperature


def soft_topk(scores, k, temperature, density) -> Rows:
    """scores (rows, n); k and temperature broadcast to (rows,)."""
    x = np.ascontiguousarray(scores, dtype=np.float64)
    k = np.broadcast_to(np.asarray(k, dtype=np.float64), x.shape[:1])
    temperature = np.broadcast_to(np.asarray(temperature, dtype=np.float64), x.shape[:1])
    law = DENSITIES[density]
    u = np.zeros_like(x)
    u[k == 0], u[k == x.shape[1]] = -np.inf, np.inf
    inner = np.flatnonzero((k > 0) & (k < x.shape[1]))
    if inner.size:
        rows = x[inner], temperature[inner]
        u[inner] = distance(rows[0], *threshold(rows[0], k[inner], rows[1], law), rows[1])
    with np.errstate(divide="ignore"):
        tail, log_tail = law.tail(abs(u)), law.log_tail(abs(u))
    above = u > 0
    return Rows(np.where(above, 1 - tail, tail), np.where(above, np.log1p(-tail), log_tail), u)


def vjp(scores, k, temperature, density, upstream):
    """Implicit differentiation (SPEC section 1): gradients in scores, k and temperature."""
    u = soft_topk(scores, k, temperature, density).u
    u[np.isinf(u)] = 0  # k = 0 and k = n: nothing moves
    moving = np.reshape((np.asarray(k) > 0) & (np.asarray(k) < u.shape[1]), (-1, 1))
    slope = moving * DENSITIES[density].pdf(abs(u)) / np.reshape(temperature, (-1, 1))
    total = slope.sum(axis=1, keepdims=True)
    share = slope / np.where(total > 0, total, 1)
    by_k = (share * upstream).sum(axis=1)
    by_score = slope * (upstream - by_k[:, None])
    centre = (share * u).sum(axis=1, keepdims=True)
    return by_score, by_k, -(upstream * slope * (u - centre)).sum(axis=1)


def threshold(x, k, temperature, law):
    """b as a sum high + low, for rows (rows, n) with 0 < k < n and one k and temperature each."""

    def imbalance_at(high, low, rows):
        return _imbalance(distance(x[rows], high, low, temperature[rows]), k[rows], law)

    bottom, top = x.min(axis=1), x.max(axis=1)
    high = _root(lambda b, rows: imbalance_at(b, 0 * b, rows), bottom, 0, top - bottom, temperature)
    ulp = np.spacing(abs(bottom) + abs(top))
    low = _root(lambda b, rows: imbalance_at(high[rows], b, rows), 0 * ulp, -ulp, ulp, temperature)
    return high, low


def distance(x, high, low, temperature):
    """(x - high - low) / temperature with x - high as an exact sum of two doubles."""
    high, low, temperature = high[:, None], low[:, None], temperature[:, None]
    gap = x - high
    back = gap - x
    lost = (x - (gap - back)) - (high + back)
    return (gap + (lost - low)) / temperature


def _imbalance(u, k, law):
    """Zero at the threshold, decreasing in b: log of surplus over deficit."""
    above = u > 0
    tail = law.tail(abs(u))
    balance = np.count_nonzero(above, axis=1) - k
    surplus = np.maximum(balance, 0) + _sum(np.where(above, 0, tail))
    deficit = np.maximum(-balance, 0) + _sum(np.where(above, tail, 0))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.log1p((surplus - deficit) / deficit)
        for i in np.flatnonzero((surplus < _TINY) | (deficit < _TINY)):
            log_tail = law.log_tail(abs(u[i]))
            more = np.logaddexp(np.log(max(balance[i], 0)), _log_sum(log_tail[~above[i]]))
            less = np.logaddexp(np.log(max(-balance[i], 0)), _log_sum(log_tail[above[i]]))
            ratio[i] = 0 if more == less else more - less
    return ratio


def _sum(values):
    return values.sum(axis=1, dtype=np.longdouble).astype(np.float64)


def _log_sum(logs):
    top = logs.max(initial=-np.inf)
    return top if np.isinf(top) else top + np.log(np.exp(logs - top).sum())


def _root(function, origin, low, high, unit):
    """Where a decreasing function of (candidates, row numbers) changes sign, row by row.

    The first bracket reaches from origin + low to origin + high and grows when it must; the last
    is 2^-56 units wide, or a few doubles.
    """
    rows = np.arange(origin.size)

    def in_units(z, rows):
        return np.clip(function(origin[rows] + z * unit[rows], rows), -1e300, 1e300)

    bracket = elementwise.bracket_root(in_units, low / unit - 1, high / unit + 1, args=(rows,))
    assert bracket.success.all()
    found = elementwise.find_root(
        in_units, bracket.bracket, args=(rows,), tolerances={"xatol": 2.0**-56}, maxiter=2000
    )
    assert found.success.all()
    return origin + found.x * unit
