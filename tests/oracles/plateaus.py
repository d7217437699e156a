"""Points of uniform F-sums by exact fractions: the middle of all that have the level."""

from fractions import Fraction


def point(scores, level, tau):
    """The middle of {t : Σ_i clip((t - x_i)/τ + 1/2, 0, 1) = level}, for a level in (0, n)."""
    xs = [Fraction(x) for x in scores]
    level, tau = Fraction(level), Fraction(tau)
    bends = sorted({x + side * tau / 2 for x in xs for side in (-1, 1)})
    sums = [_sum(xs, t, tau) for t in bends]
    first = next(i for i, s in enumerate(sums) if s >= level)
    if sums[first] > level:
        return float(_between(bends, sums, first - 1, level))
    last = max(i for i, s in enumerate(sums) if s == level)
    return float((bends[first] + bends[last]) / 2)


def _sum(xs, t, tau):
    return sum(min(max((t - x) / tau + Fraction(1, 2), Fraction(0)), Fraction(1)) for x in xs)


def _between(bends, sums, i, level):
    share = (level - sums[i]) / (sums[i + 1] - sums[i])
    return bends[i] + share * (bends[i + 1] - bends[i])
