"""Rank and FSum of one row, by direct sums; its inverse and the permutation of rows, by bisection.

A sum of F(u) is counted as "how many are below", exactly, plus a sum of tails: nothing cancels.
"""

import numpy as np

from tests.oracles import bisection
from tests.oracles.densities import DENSITIES


def fsum(scores, targets, temperature, density):
    """Σ_i F((t_j - x_i)/τ) for every target."""
    x, t = (np.asarray(v, dtype=np.float64) for v in (scores, targets))
    gap = t[:, None] - x
    return _count(gap) + _tails(gap / temperature, DENSITIES[density])


def rank(scores, temperature, density):
    """1/2 + Σ_j F((x_i - x_j)/τ)."""
    return fsum(scores, scores, temperature, density) + 0.5


def rank_vjp(scores, temperature, density, upstream):
    """The gradient of Σ_i v_i rank_i in the scores and in the temperature."""
    u = np.subtract.outer(scores, scores) / temperature
    slope = DENSITIES[density].pdf(abs(u)) / temperature
    slope = slope.astype(np.longdouble)
    by_scores = upstream * slope.sum(axis=1) - (upstream[:, None] * slope).sum(axis=0)
    return by_scores.astype(np.float64), float(-(upstream[:, None] * slope * u).sum())


def inverse(scores, levels, temperature, density):
    """t with FSum(t) = level for every 0 < level < n, of every row: (high, low), a sum of both.

    scores (rows, n), temperature (rows,), the result (rows, levels): bisection takes all at once.
    """
    x, levels = (np.asarray(v, dtype=np.float64) for v in (scores, levels))
    n, each = x.shape[1], levels.size
    # FSum(t) = c says that n - c of the mass lies above t: the threshold of a soft top-k.
    above = np.tile(n - levels, len(x))
    problems = np.repeat(x, each, axis=0), above, np.repeat(temperature, each)
    high, low = bisection.threshold(*problems, DENSITIES[density])
    return high.reshape(-1, each), low.reshape(-1, each)


def sort(scores, temperature, density):
    """FSum⁻¹(j - 1/2), j = 1..n, of every row."""
    high, low = inverse(scores, _places(scores), temperature, density)
    return high + low


def sort_vjp(scores, temperature, density, upstream):
    """By implicit differentiation, with everything measured from the threshold."""
    high, low = inverse(scores, _places(scores), temperature, density)
    u = _distances(scores, high, low, temperature)
    slope = DENSITIES[density].pdf(abs(u))
    share = slope / slope.sum(axis=2, keepdims=True)
    by_scores = (upstream[:, :, None] * share).sum(axis=1)
    return by_scores, (upstream * (share * u).sum(axis=2)).sum(axis=1)


def permutation(scores, temperature, density):
    """P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ) with FSum(t_j) = j, of every row."""
    rows, n = scores.shape
    if n == 1:
        return np.ones((rows, 1, 1))
    high, low = inverse(scores, np.arange(1, n), temperature, density)
    edge = np.full((rows, 1, n), np.inf)
    u = np.concatenate([-edge, _distances(scores, high, low, temperature), edge], axis=1)
    tail = DENSITIES[density].tail(abs(u))
    below, above = u[:, :-1], u[:, 1:]
    before, behind = tail[:, :-1], tail[:, 1:]
    same_side = np.where(above <= 0, behind - before, before - behind)
    return np.where((below < 0) & (above > 0), 1 - before - behind, same_side)


def _places(scores):
    return np.arange(scores.shape[1]) + 0.5


def _distances(scores, high, low, temperature):
    """(t_j - x_i)/τ, (rows, levels, n)."""
    rows, each = high.shape
    x = np.repeat(np.asarray(scores, dtype=np.float64), each, axis=0)
    u = bisection.distance(x, high.ravel(), low.ravel(), np.repeat(temperature, each))
    return -u.reshape(rows, each, -1)


def _count(gap):
    below, level = (np.count_nonzero(mask, axis=1) for mask in (gap > 0, gap == 0))
    return below + 0.5 * level


def _tails(u, law):
    tail = np.where(u == 0, 0, law.tail(abs(u)))
    return np.where(u > 0, -tail, tail).sum(axis=1, dtype=np.longdouble).astype(np.float64)
