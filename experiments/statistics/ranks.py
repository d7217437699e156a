"""Several methods on several cases: average ranks, and how far apart they have to be.

After Demšar (2006), Statistical comparisons of classifiers over multiple data sets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import torch
from torch import Tensor

from experiments.statistics.paired import LEVEL, holm, midranks, root, wilcoxon


@dataclass(frozen=True)
class Ranking:
    """Methods by average rank, 1 for the best."""

    ranks: Mapping[str, float]  #: the best first
    cases: int
    p: float  #: of Friedman's test: all methods are alike
    critical: float  #: Nemenyi's difference
    alike: Sequence[tuple[str, ...]]  #: the longest runs with no difference by Nemenyi's test
    wilcoxon: Sequence[tuple[str, ...]]  #: those by Wilcoxon's, with Holm's correction; none where
    #: it could not tell anything
    needed: int  #: cases, for it to tell anything


def ranking(values: Mapping[str, Sequence[float]], higher: bool) -> Ranking:
    """Of methods with a value for every case; inf or -inf where a method failed."""
    cases = list(zip(*values.values(), strict=True))
    sign = -1.0 if higher else 1.0
    rows = [midranks([sign * value for value in case]) for case in cases]
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    ranks = dict(sorted(zip(values, means, strict=True), key=lambda pair: pair[1]))
    critical = nemenyi(len(values), len(cases))
    pairs = list(combinations(ranks, 2))
    corrected = holm([wilcoxon(_gaps(values[a], values[b])) for a, b in pairs])
    differ = {pair for pair, p in zip(pairs, corrected, strict=True) if p < LEVEL}
    needed = cases_needed(len(values))
    runs = _runs(list(ranks), lambda a, b: (a, b) not in differ)
    return Ranking(
        ranks,
        len(cases),
        friedman(rows),
        critical,
        _runs(list(ranks), lambda a, b: ranks[b] - ranks[a] <= critical),
        runs if len(cases) >= needed else (),
        needed,
    )


def cases_needed(methods: int) -> int:
    """The fewest with which Wilcoxon's test, corrected for all pairs, can tell anything: if all N
    gaps have one sign its p-value is 2/2^N, and the smallest is multiplied by the number of pairs.

    >>> cases_needed(2), cases_needed(13)
    (6, 12)
    """
    pairs = methods * (methods - 1) // 2
    return math.floor(math.log2(2 * pairs / LEVEL)) + 1


def _gaps(first: Sequence[float], second: Sequence[float]) -> list[float]:
    """Two that failed both are equal."""
    return [0.0 if a == b else a - b for a, b in zip(first, second, strict=True)]


def _runs(order: list[str], alike: Callable[[str, str], bool]) -> list[tuple[str, ...]]:
    """Of two or more neighbours that are all alike, those in no longer one."""
    found: list[tuple[int, int]] = []
    for first in range(len(order)):
        last = first
        while last + 1 < len(order) and all(
            alike(order[i], order[last + 1]) for i in range(first, last + 1)
        ):
            last += 1
        if last > first and not (found and found[-1][1] >= last):
            found.append((first, last))
    return [tuple(order[first : last + 1]) for first, last in found]


def friedman(rows: Sequence[Sequence[float]]) -> float:
    """p-value of the hypothesis that all methods are alike, of a row of ranks for every case:

        χ² = 12 Σ (R_j - N (k + 1)/2)² / (N k (k + 1) - Σ ties (t³ - t)/(k - 1))      k - 1 degrees

    R_j the sum of a method's ranks over the N cases.
    """
    n, k = len(rows), len(rows[0])
    sums = [sum(column) for column in zip(*rows, strict=True)]
    spread = sum((total - n * (k + 1) / 2) ** 2 for total in sums)
    ties = sum(
        row.count(rank) ** 3 - row.count(rank) for row in map(list, rows) for rank in set(row)
    )
    scale = n * k * (k + 1) - ties / (k - 1)
    if scale <= 1e-9:
        return 1.0  # every case is one tie
    half = torch.tensor([(k - 1) / 2, 6 * spread / scale], dtype=torch.float64)
    return torch.special.gammaincc(half[0], half[1]).item()


def nemenyi(methods: int, cases: int, level: float = LEVEL) -> float:
    """The critical difference of average ranks q √(k (k + 1)/(6 N)), where q √2 is the quantile of
    the range of k independent normal variables."""
    return _quantile(methods, level) * math.sqrt(methods * (methods + 1) / (6 * cases))


@cache
def _quantile(methods: int, level: float) -> float:
    """The q above: a page asks for the same few again and again."""
    return root(lambda width: _range_below(width, methods) - (1 - level)) / math.sqrt(2)


def _range_below(width: float, k: int) -> float:
    """P(range of k normal variables <= w) = k ∫ φ(z) (Φ(z + w) - Φ(z))^(k-1) dz, z the smallest."""
    z = torch.linspace(-9, 9, 2_001, dtype=torch.float64)
    inside = torch.special.ndtr(z + width) - torch.special.ndtr(z)
    density: Tensor = torch.exp(-z.square() / 2) / math.sqrt(2 * math.pi)
    return k * torch.trapezoid(density * inside ** (k - 1), z).item()


def concordance(
    ours: Mapping[str, float], theirs: Mapping[str, float]
) -> tuple[int, list[tuple[str, str]]]:
    """How many pairs stand in the same order, and the pairs that do not, the one that leads in
    `theirs` first. Both mappings are the smaller the better; ties of either side are left out.

    With C pairs of the one kind and D of the other, Kendall's τ is (C - D)/(C + D).
    """
    same, other = 0, []
    for a, b in combinations([name for name in ours if name in theirs], 2):
        sign = (ours[a] - ours[b]) * (theirs[a] - theirs[b])
        same += sign > 0
        if sign < 0:
            other.append((a, b) if theirs[a] < theirs[b] else (b, a))
    return same, other
