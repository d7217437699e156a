"""Rank, FSum, its inverse and the permutation of one row: direct sums, O(n²), and bisection.

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
    """t with FSum(t) = level for every 0 < level < n, as a sum of two doubles (high, low)."""
    levels = np.asarray(levels, dtype=np.float64)
    rows = np.tile(np.asarray(scores, dtype=np.float64), (levels.size, 1))
    temperatures = np.full(levels.size, float(temperature))
    # FSum(t) = c says that n - c of the mass lies above t: the threshold of a soft top-k.
    return bisection.threshold(rows, rows.shape[1] - levels, temperatures, DENSITIES[density])


def sort(scores, temperature, density):
    """FSum⁻¹(j - 1/2), j = 1..n."""
    high, low = inverse(scores, np.arange(len(scores)) + 0.5, temperature, density)
    return high + low


def sort_vjp(scores, temperature, density, upstream):
    """By implicit differentiation, with everything measured from the threshold."""
    high, low = inverse(scores, np.arange(len(scores)) + 0.5, temperature, density)
    x = np.tile(np.asarray(scores, dtype=np.float64), (len(scores), 1))
    u = -bisection.distance(x, high, low, np.full(len(scores), float(temperature)))
    slope = DENSITIES[density].pdf(abs(u))
    share = slope / slope.sum(axis=1, keepdims=True)
    return upstream @ share, float(upstream @ (share * u).sum(axis=1))


def permutation(scores, temperature, density):
    """P_ji = F((t_j - x_i)/τ) - F((t_{j-1} - x_i)/τ) with FSum(t_j) = j."""
    n, law = len(scores), DENSITIES[density]
    if n == 1:
        return np.ones((1, 1))
    high, low = inverse(scores, np.arange(1, n), temperature, density)
    x = np.tile(np.asarray(scores, dtype=np.float64), (n - 1, 1))
    u = -bisection.distance(x, high, low, np.full(n - 1, float(temperature)))
    edge = np.full((1, n), np.inf)
    u = np.concatenate([-edge, u, edge])
    tail = law.tail(abs(u))
    below, above = u[:-1], u[1:]
    same_side = np.where(above <= 0, tail[1:] - tail[:-1], tail[:-1] - tail[1:])
    return np.where((below < 0) & (above > 0), 1 - tail[:-1] - tail[1:], same_side)


def _count(gap):
    below, level = (np.count_nonzero(mask, axis=1) for mask in (gap > 0, gap == 0))
    return below + 0.5 * level


def _tails(u, law):
    tail = np.where(u == 0, 0, law.tail(abs(u)))
    return np.where(u > 0, -tail, tail).sum(axis=1, dtype=np.longdouble).astype(np.float64)
