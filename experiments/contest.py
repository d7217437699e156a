"""Who is compared with whom, by which figure, and which differences are more than chance."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from experiments.paper import Paper
from experiments.statistics import LEVEL, Difference, holm, interval, paired
from experiments.trials import Trials

_ROUNDING = 6  #: digits behind those that are shown; further ones are those of the arithmetic
ENOUGH = 3  #: seeds that both of two arms need before anything is said of their difference
Scores = Mapping[str, Mapping[int, float]]  #: of each method, by seed
Pair = tuple[str, str]


def together(arm: str) -> Pair:
    """All arms are in one group."""
    return "", arm


def by_first(arm: str) -> Pair:
    """The group stands before the first comma.

    >>> by_first("MNIST, πST, laplace")
    ('MNIST', 'πST, laplace')
    """
    group, _, method = arm.partition(", ")
    return group, method


@dataclass(frozen=True)
class Contest:
    """A figure of the trials by which the methods of a group are compared."""

    key: str
    name: str  #: of the figure, inside a sentence
    higher: bool = False  #: is better
    digits: int = 2
    scale: float = 1.0
    unit: str = ""  #: behind the number
    split: Callable[[str], Pair] = together  #: group and method of an arm
    deciding: bool = True  #: by which a method would be chosen
    time: str = "seconds"  #: key of the time of a trial
    figure: str = ""  #: key of the paper's figure, if it is another one

    def groups(self, trials: Trials) -> dict[str, dict[str, dict[int, float]]]:
        """Scores of every group that has any; what is not finite is left out."""
        found: dict[str, dict[str, dict[int, float]]] = {}
        for record in trials.records:
            value = record.get(self.key)
            if isinstance(value, (int, float)) and math.isfinite(value):
                group, method = self.split(record["arm"])
                scores = found.setdefault(group, {}).setdefault(method, {})
                scores[record["seed"]] = round(self.scale * value, self.digits + _ROUNDING)
        return found

    def printed(self, trials: Trials, paper: Paper) -> dict[str, dict[str, float]]:
        """The paper's figures in the same shape."""
        found: dict[str, dict[str, float]] = {}
        key = self.figure or self.key
        for arm, figures in paper.figures_for(trials.config).items():
            if key in figures:
                group, method = self.split(arm)
                found.setdefault(group, {})[method] = number(figures[key])
        return found

    def order(self, scores: Scores) -> list[str]:
        """By their means, the best first."""
        return sorted(scores, key=lambda method: self.cost(mean(scores[method])))

    def cost(self, value: float) -> float:
        """The smaller the better."""
        return -value if self.higher else value

    def shown(self, value: float) -> str:
        return f"{value:,.{self.digits}f}{self.unit}"

    def estimate(self, values: Mapping[int, float]) -> str:
        """The mean, and its 95 % interval if there are enough seeds for one."""
        centre, half = interval(list(values.values()))
        if len(values) < ENOUGH:
            return self.shown(centre)
        return f"{centre:,.{self.digits}f} ± {half:.{self.digits}f}{self.unit}"


@dataclass(frozen=True)
class Verdict:
    """On two methods."""

    difference: Difference  #: of the first from the second
    p: float  #: of the paired t-test, corrected; nan if there are too few seeds

    @property
    def few(self) -> bool:
        return self.difference.seeds < ENOUGH

    @property
    def differ(self) -> bool:
        return not self.few and self.p < LEVEL


def verdicts(scores: Scores, pairs: Sequence[Pair]) -> dict[Pair, Verdict]:
    """On all pairs, by paired t-tests with Holm's correction over those that have enough seeds."""
    differences = {pair: paired(scores[pair[0]], scores[pair[1]]) for pair in pairs}
    able = [pair for pair in pairs if differences[pair].seeds >= ENOUGH]
    corrected = dict(zip(able, holm([differences[pair].t for pair in able]), strict=True))
    return {pair: Verdict(differences[pair], corrected.get(pair, math.nan)) for pair in pairs}


def against_best(contest: Contest, scores: Scores) -> tuple[str, dict[str, Verdict]]:
    """The method with the best mean, and a verdict on each of the others, the best of them first:
    whether it can be the best one in truth.

    Who has the best mean is known only from the same trials. For the one of m methods that is the
    best in truth to be called beaten, one of its m - 1 paired tests has to be wrong, whichever of
    them is looked at: so each p-value is multiplied by m - 1 (Bonferroni; the idea is that of Hsu,
    1981, multiple comparisons with the best). With 95 % certainty the best one is not among those
    that are called beaten.
    """
    best, *others = contest.order(scores)
    found = {}
    for other in others:
        difference = paired(scores[best], scores[other])
        enough = difference.seeds >= ENOUGH
        p = min(1.0, len(others) * difference.t) if enough else math.nan
        found[other] = Verdict(difference, p)
    return best, found


def mean(values: Mapping[int, float]) -> float:
    return statistics.mean(values.values())


def number(printed: str) -> float:
    """Of a figure as printed, without its ±.

    >>> number("0.113 ± 0.00244")
    0.113
    """
    return float(printed.split()[0].replace(",", ""))
