"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, mean
from experiments.paper import Paper
from experiments.reading import papers_gap, papers_order
from experiments.statistics import interval
from experiments.trials import Trials
from experiments.words import named

CONTESTS = (
    Contest("iterations", "number of iterations", deciding=False),
    Contest("ms", "time", digits=1, unit=" ms"),
)
_OURS, _PLAIN = "softorder", "halley, both"


def read(trials: Trials, paper: Paper) -> list[str]:
    iterations, times = CONTESTS
    return [
        papers_gap(iterations, trials, paper),
        _more(iterations, trials, paper),
        papers_order(iterations, trials, paper),
        _speed(times, trials, paper),
    ]


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


def _speed(contest: Contest, trials: Trials, paper: Paper) -> str:
    times = contest.groups(trials).get("", {})
    if _OURS not in times or _PLAIN not in times:
        return ""
    ours, plain = mean(times[_OURS]), mean(times[_PLAIN])
    text = (
        f"This library's solver takes {contest.shown(ours)}, "
        f"the same search in plain torch {plain / ours:,.0f} times as long"
    )
    theirs = contest.printed(trials, paper).get("", {}).get(_PLAIN)
    if theirs is None:
        return f"{text}."
    return f"{text}, and the paper's on a GPU {theirs / ours:.1f} times."
