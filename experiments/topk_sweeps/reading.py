"""What the figures say."""

from __future__ import annotations

import statistics

from experiments.contest import Contest, Pair, Scores, mean, verdicts
from experiments.paper import Paper
from experiments.reading import claim, sides, sweeps
from experiments.topk_sweeps.points import METHOD
from experiments.trials import Trials
from experiments.words import span

TOP1 = Contest("top1", "top-1 accuracy", True, 2, 100, " %", deciding=False)
TOP5 = Contest("top5", "top-5 accuracy", True, 2, 100, " %", deciding=False)
CONTESTS = (TOP1, TOP5)
_HIGH = 0.6  #: the share of k = 5 up to which the paper's top-1 rises
_MOST = 0.9  #: short of k = 5 alone
_MODERATE = (10, 40)  #: m, between which it changes little


def read(trials: Trials, _paper: Paper) -> list[str]:
    first, second = (contest.groups(trials).get("", {}) for contest in CONTESTS)
    alone, most, high, none = (f"share = {share:g}, {METHOD}" for share in (1, _MOST, _HIGH, 0))
    return [
        *(sweeps(contest, trials, where) for contest in CONTESTS),
        _claimed(TOP5, second, [(most, none)], "a large share of k = 5 is better in top-5"),
        _claimed(TOP1, first, [(high, none)], f"a share of {_HIGH} is better in top-1"),
        _claimed(TOP1, first, [(most, alone)], "top-1 falls for k = 5 alone"),
        _classes(first),
        _claimed(TOP1, first, _tuned(first), "fine-tuning improves networks of all sizes in top-1"),
    ]


def where(arm: str) -> Pair | None:
    """The curve and the place on it.

    >>> where("temperature = 0.3, laplace, k = 5")
    ('laplace, k = 5', 'temperature = 0.3')
    """
    place, _, curve = arm.partition(", ")
    sweep = place.partition(" = ")[0]
    if not curve or sweep == "width":
        return None
    return (curve, place) if sweep == "temperature" else (f"{curve}, {sweep}", place)


def _claimed(contest: Contest, scores: Scores, pairs: list[Pair], text: str) -> str:
    """Whether the first of every pair is better than the second."""
    pairs = [pair for pair in pairs if set(pair) <= scores.keys()]
    if not pairs:
        return ""
    found = sides(contest, verdicts(scores, pairs))
    return claim(text, None if found.unclear else len(found.better) == len(pairs))


def _classes(scores: Scores) -> str:
    low, high = _MODERATE
    found = {}
    for arm, values in scores.items():
        sweep, _, m = arm.partition(", ")[0].partition(" = ")
        if sweep == "m" and low <= float(m) <= high:
            found[int(m)] = mean(values)
    if len(found) < 2:
        return ""
    ends = f"{min(found)} and {max(found)}"
    spread = max(found.values()) - min(found.values())
    noise = statistics.mean(statistics.pstdev(v.values()) for v in scores.values())
    return (
        f"Between m = {ends} the mean top-1 accuracy moves by {span(TOP1, [spread])}, where the "
        f"seeds of an arm deviate by {span(TOP1, [noise])}."
    )


def _tuned(scores: Scores) -> list[Pair]:
    """Every width after tuning, and before."""
    widths = [arm.partition(", ")[0] for arm in scores if arm.startswith("width")]
    return [(f"{width}, {METHOD}", f"{width}, original") for width in dict.fromkeys(widths)]
