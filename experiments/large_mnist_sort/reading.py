"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, Scores, by_first, mean
from experiments.paper import Paper
from experiments.reading import beside_table, gains, papers_gap
from experiments.trials import Trials
from experiments.words import quoted, span

CONTESTS = (
    Contest("whole", "share of whole orders right", True, 1, 100, " %", by_first),
    Contest("places", "share of places right", True, 1, 100, " %", by_first, deciding=False),
)
_BASE = "as quick"


def read(trials: Trials, paper: Paper) -> list[str]:
    contest = CONTESTS[0]
    if not trials.config.get("variants"):
        return beside_table(contest, trials, paper, papers_gap)
    method = trials.config["methods"][0]
    printed = contest.printed(trials, paper)
    return [
        sentence
        for group, scores in contest.groups(trials).items()
        if _BASE in scores
        for sentence in (
            gains(contest, scores, _BASE, group),
            _left(contest, scores, printed.get(group, {}).get(method)),
        )
    ]


def _left(contest: Contest, scores: Scores, theirs: float | None) -> str:
    """How far the best one still is from the paper."""
    if theirs is None:
        return ""
    best = contest.order(scores)[0]
    gap = theirs - mean(scores[best])
    side = "below" if gap > 0 else "above"
    return f"The best, {quoted(best)}, is {span(contest, [abs(gap)])} {side} the paper's."
