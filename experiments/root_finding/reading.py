"""What the figures say."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from experiments.contest import ENOUGH, Contest, Pair, mean
from experiments.paper import Paper
from experiments.reading import papers_gap, papers_order
from experiments.statistics import interval
from experiments.trials import Trials
from experiments.words import named

CONTESTS = (
    Contest("iterations", "number of iterations", deciding=False),
    Contest("ms", "time", digits=1, unit=" ms"),
)
_LOOSE = 1e-6  #: a hundred times the tolerance of the trials
_OURS, _PLAIN = "softorder", "halley, both"


def read(trials: Trials, paper: Paper) -> list[str]:
    iterations, times = CONTESTS
    if not paper.figures_for(trials.config):  # rows of another length than those of its table 5
        return [_speed(times, trials)]
    return [
        _interval(trials, paper),
        _causes(trials),
        papers_gap(iterations, trials, paper),
        _more(iterations, trials, paper),
        papers_order(iterations, trials, paper),
        _speed(times, trials, paper),
    ]


def _interval(trials: Trials, paper: Paper) -> str:
    """How far the iterations are from the paper's, for each interval that a search began with."""
    contest = Contest("iterations", "number of iterations", split=_beyond)
    printed = contest.printed(trials, paper).get("", {})
    gaps: dict[str, dict[str, float]] = {}
    for beyond, scores in contest.groups(trials).items():
        if beyond:
            found = {m: mean(scores[m]) - printed[m] for m in scores if m in printed}
            gaps[beyond] = found
    if len(gaps) < 2 or any(len(found) < 9 for found in gaps.values()):
        return ""
    said = []
    for beyond, found in gaps.items():
        hybrids = [gap for method, gap in found.items() if method != "bisection"]
        said.append(
            f"{beyond}: bisection {found['bisection']:+.2f}, "
            f"the others {min(hybrids):+.2f} to {max(hybrids):+.2f}"
        )
    both, single = (
        max(
            abs(gaps[one][method] - gaps[other][method])
            for one in gaps
            for other in gaps
            for method in gaps[one].keys() & gaps[other].keys() - {"bisection"}
            if method.endswith("both") == wanted
        )
        for wanted in (True, False)
    )
    return (
        "Iterations beyond the paper's, for an interval that is wider than max |x| by "
        f"{'; by '.join(said)}. From one interval to another, the mean changes by up to "
        f"{single:.2f} for single guesses and {both:.2f} for the better of both; the paper does "
        "not state its interval."
    )


def _causes(trials: Trials) -> str:
    """What else may move the number of iterations: the stopping rule, and the batch."""
    saved: dict[str, list[float]] = {"bisection": [], "others": []}
    means: dict[str, list[float]] = {}
    spread = []
    for arm in trials.arms:
        beyond, method = _beyond(arm)
        curves = [curve for curve in trials.values(arm, "curve") if len(curve) > 1]
        if not beyond or len(curves) < ENOUGH:
            return ""
        counts = [len(curve) - 1 for curve in curves]
        loose = [_until(curve, _LOOSE) for curve in curves]
        who = method if method in saved else "others"
        saved[who].append(statistics.mean(counts) - statistics.mean(loose))
        if who == "others" and not method.endswith("both"):
            means.setdefault(method, []).append(statistics.mean(counts))
            spread.append(statistics.stdev(counts))
    if not all(saved.values()) or not spread:
        return ""
    interval_ = max(max(found) - min(found) for found in means.values())
    rest = max(*saved["others"], *spread)
    return (
        f"A tolerance of {_LOOSE:g} would save bisection {_range(saved['bisection'])} iterations "
        f"and the others {_range(saved['others'])}. From one batch to another those of a single "
        f"guess have a standard deviation of up to {max(spread):.2f}. So the interval moves them "
        f"{'more' if interval_ > rest else 'less'} than the stopping rule or the batch."
    )


def _until(curve: Sequence[float], tolerance: float) -> int:
    """Iterations until the error is within the tolerance.

    >>> _until([5.0, 1e-3, 1e-7, 1e-9], 1e-6)
    2
    """
    return next(i for i, error in enumerate(curve) if error <= tolerance or i == len(curve) - 1)


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def _beyond(arm: str) -> Pair:
    """
    >>> _beyond("halley, logit, up to max |x| + 18")
    ('18', 'halley, logit')
    """
    method, _, beyond = arm.partition(", up to max |x| + ")
    return beyond, method


def _more(contest: Contest, trials: Trials, paper: Paper) -> str:
    """Whose interval leaves the paper's mean out."""
    printed = contest.printed(trials, paper).get("", {})
    scores = contest.groups(trials).get("", {})
    able = {arm: list(scores[arm].values()) for arm in scores if arm in printed}
    able = {arm: values for arm, values in able.items() if len(values) > 1}
    if not able:
        return ""
    ends = {arm: interval(values) for arm, values in able.items()}
    above = [arm for arm, (centre, half) in ends.items() if centre - half > printed[arm]]
    below = [arm for arm, (centre, half) in ends.items() if centre + half < printed[arm]]
    rest = len(able) - len(above) - len(below)
    return (
        f"Our 95 % interval is above the paper's figure for {named(above) or 'none'}, below it for "
        f"{named(below) or 'none'} and around it for the other {rest}."
    )


def _speed(contest: Contest, trials: Trials, paper: Paper | None = None) -> str:
    times = contest.groups(trials).get("", {})
    if _OURS not in times or _PLAIN not in times:
        return ""
    ours, plain = mean(times[_OURS]), mean(times[_PLAIN])
    text = (
        f"This library's solver takes {contest.shown(ours)}, "
        f"the same search in plain torch {plain / ours:,.0f} times as long"
    )
    theirs = None if paper is None else contest.printed(trials, paper).get("", {}).get(_PLAIN)
    if theirs is None:
        return f"{text}."
    return f"{text}, and the paper's on a GPU {theirs / ours:.1f} times."
