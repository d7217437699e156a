"""Two methods that ran with the same seeds: how far apart, and whether that may be chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

LEVEL = 0.05  #: a difference is one if chance makes it less often than this


@dataclass(frozen=True)
class Difference:
    """Of two methods, the mean over the seeds that both have."""

    seeds: int
    mean: float
    half: float  #: of the 95 % interval; inf for a single seed
    t: float  #: p-value of the paired t-test; nan for a single seed
    wilcoxon: float  #: p-value of the signed-rank test


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Difference:
    """first - second; both by seed.

    >>> paired({0: 3.0, 1: 5.0, 2: 4.0}, {0: 1.0, 1: 2.0, 2: 3.0, 3: 9.0}).mean
    2.0
    """
    gaps = [first[seed] - second[seed] for seed in sorted(first.keys() & second.keys())]
    if not gaps:
        return Difference(0, math.nan, math.inf, math.nan, math.nan)
    mean, half = interval(gaps)
    return Difference(len(gaps), mean, half, t_test(gaps), wilcoxon(gaps))


def interval(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """The mean and half of its interval x̄ ± t s/√n, t the quantile of Student's distribution."""
    mean, n = statistics.mean(values), len(values)
    if n < 2:
        return mean, math.inf
    return mean, student_quantile(1 - level / 2, n - 1) * statistics.stdev(values) / math.sqrt(n)


def t_test(gaps: Sequence[float]) -> float:
    """Two-sided p-value of the mean 0, by t = x̄ √n / s. Equal gaps leave no doubt: 0, or 1 if they
    are all 0."""
    n = len(gaps)
    if n < 2:
        return math.nan
    mean, deviation = statistics.mean(gaps), statistics.stdev(gaps)
    if deviation <= 1e-12 * abs(mean):
        return 0.0 if mean else 1.0
    return student_p(mean * math.sqrt(n) / deviation, n - 1)


def wilcoxon(gaps: Sequence[float]) -> float:
    """Two-sided p-value of the signed-rank test, exact for every n, with ties as well.

    Under the hypothesis every gap has either sign with probability 1/2. The ranks of |gap|, zeros
    left out, are halves of integers, so the law of the sum of the positive ones is a table that
    grows by one rank after the other.
    """
    gaps = [gap for gap in gaps if gap != 0]
    twice = [round(2 * rank) for rank in midranks([abs(gap) for gap in gaps])]
    total = sum(twice)
    counts = [1] + [0] * total  # of the sign patterns with each sum
    for rank in twice:
        for at in range(total, rank - 1, -1):
            counts[at] += counts[at - rank]
    positive = sum(rank for rank, gap in zip(twice, gaps, strict=True) if gap > 0)
    tail = sum(counts[: min(positive, total - positive) + 1])
    return min(1.0, 2 * tail / 2 ** len(gaps))


def midranks(values: Sequence[float]) -> list[float]:
    """1 for the smallest; equal values share the mean of their ranks.

    >>> midranks([10.0, 20.0, 10.0])
    [1.5, 3.0, 1.5]
    """
    below = [sum(other < value for other in values) for value in values]
    equal = [sum(other == value for other in values) for value in values]
    return [b + (e + 1) / 2 for b, e in zip(below, equal, strict=True)]


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's correction: the i-th smallest of m is multiplied by m - i + 1, and none may be below
    a smaller one's. All tests together are then wrong with the probability `LEVEL` at most.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected, least = [0.0] * len(ps), 0.0
    for place, i in enumerate(order):
        least = max(least, min(1.0, (len(ps) - place) * ps[i]))
        corrected[i] = least
    return corrected


def student_p(t: float, freedom: int) -> float:
    """P(|T| > |t|) of Student's distribution with an integer number of degrees of freedom.

    With θ = atan(|t|/√ν) the probability of being inside is a finite sum of powers of cos θ
    (Abramowitz & Stegun 26.7.3 and 26.7.4):

        odd ν:   2/π (θ + sin θ cos θ (1 + 2/3 cos² θ + 2·4/(3·5) cos⁴ θ + ... to cos^(ν-3) θ))
        even ν:  sin θ (1 + 1/2 cos² θ + 1·3/(2·4) cos⁴ θ + ... to cos^(ν-2) θ)
    """
    angle = math.atan(abs(t) / math.sqrt(freedom))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    odd = freedom % 2
    term, total = 1.0, 0.0
    for j in range(freedom // 2):
        total += term
        term *= square * (2 * j + 1 + odd) / (2 * j + 2 + odd)
    if not odd:
        return max(0.0, 1 - sine * total)
    return max(0.0, 1 - 2 / math.pi * (angle + sine * math.cos(angle) * total))


def student_quantile(probability: float, freedom: int) -> float:
    """t with P(T <= t) = probability >= 1/2."""
    return root(lambda t: 2 * (1 - probability) - student_p(t, freedom))


def root(rising: Callable[[float], float]) -> float:
    """The positive zero of a rising function, by bisection."""
    low, high = 0.0, 1.0
    while rising(high) < 0:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < 0 else (low, middle)
    return high
