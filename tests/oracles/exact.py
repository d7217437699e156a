"""One short row in 80 digits: soft top-k and permutation entries, by bisection on the sum."""

from dataclasses import dataclass

import mpmath

from tests.oracles.densities import DENSITIES

_DIGITS = 80


@dataclass(frozen=True)
class ExactRow:
    p: list
    log_p: list


def soft_topk(scores, k, temperature, density) -> ExactRow:
    """p and log p as mpmath numbers; the arguments are taken at their exact binary value."""
    with mpmath.workdps(_DIGITS):
        x = [mpmath.mpf(v) for v in scores]
        k, temperature = mpmath.mpf(k), mpmath.mpf(temperature)
        if k in (0, len(x)):
            p = mpmath.mpf(1 if k else 0)
            return ExactRow([p] * len(x), [mpmath.log(p) if p else -mpmath.inf] * len(x))
        tail = DENSITIES[density].exact_tail
        b = _threshold(x, k, temperature, tail)
        u = [(v - b) / temperature for v in x]
        tails = [tail(abs(v)) for v in u]
        p = [t if v <= 0 else 1 - t for v, t in zip(u, tails, strict=True)]
        return ExactRow(p, [mpmath.log(v) if v else -mpmath.inf for v in p])


def jacobian(scores, k, temperature, density, of="p"):
    """Central differences of `soft_topk`, exact to twenty digits: by scores, k, temperature."""
    with mpmath.workdps(_DIGITS):
        x = [mpmath.mpf(v) for v in scores]
        k, temperature = mpmath.mpf(k), mpmath.mpf(temperature)
        step = mpmath.mpf(10) ** -12 * temperature

        def slope(move):
            above, below = (getattr(soft_topk(*move(sign * step), density), of) for sign in (1, -1))
            return [float((a - b) / (2 * step)) for a, b in zip(above, below, strict=True)]

        def moved(j, h):
            return [v + h * (i == j) for i, v in enumerate(x)]

        columns = [slope(lambda h, j=j: (moved(j, h), k, temperature)) for j in range(len(x))]
        by_score = [list(row) for row in zip(*columns, strict=True)]
        by_k = slope(lambda h: (x, k + h, temperature))
        by_temperature = slope(lambda h: (x, k, temperature + h))
        return by_score, by_k, by_temperature


def permutation_losses(scores, target, temperature, density):
    """-log P[target_i, i], with the thresholds of soft top-k for every k."""
    with mpmath.workdps(_DIGITS):
        x, temperature = [mpmath.mpf(v) for v in scores], mpmath.mpf(temperature)
        tail, n = DENSITIES[density].exact_tail, len(scores)
        t = [_threshold(x, mpmath.mpf(n - j), temperature, tail) for j in range(1, n)]
        t = [-mpmath.inf, *t, mpmath.inf]

        def above(edge, value):
            """1 - F and F of the edge, both exact."""
            u = (edge - value) / temperature
            small = mpmath.mpf(0) if mpmath.isinf(u) else tail(abs(u))
            return (small, 1 - small) if u > 0 else (1 - small, small)

        losses = []
        for value, place in zip(x, target, strict=True):
            low, high = above(t[place], value), above(t[place + 1], value)
            # 80 digits do not hold 1 - 1e-500: take the difference that does not cancel
            entry = high[1] - low[1] if t[place + 1] <= value else low[0] - high[0]
            losses.append(float(-mpmath.log(entry)))
        return losses


def _threshold(x, k, temperature, tail):
    low, high = min(x), max(x)
    reach = temperature
    while _surplus(x, low, k, temperature, tail) < 0 or _surplus(x, high, k, temperature, tail) > 0:
        low, high, reach = min(x) - reach, max(x) + reach, 2 * reach
    while high - low > temperature * mpmath.mpf(10) ** -35:
        middle = (low + high) / 2
        surplus = _surplus(x, middle, k, temperature, tail)
        low = middle if surplus >= 0 else low
        high = middle if surplus <= 0 else high
    return (low + high) / 2


def _surplus(x, b, k, temperature, tail):
    """The sum of p minus k, counted so that tails of 10^-100000 still decide its sign."""
    surplus, correction = -k, mpmath.mpf(0)
    for value in x:
        u = (value - b) / temperature
        surplus += 1 if u > 0 else 0
        correction += -tail(u) if u > 0 else tail(-u)
    return correction if surplus == 0 else surplus + correction
