"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, Scores, by_first, mean, verdicts
from experiments.paper import Paper
from experiments.reading import beside_table, papers_gap
from experiments.trials import Trials
from experiments.words import few, listed, quoted, span, span_signed, starting, too_few

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
            gains(contest, scores, group),
            _left(contest, scores, printed.get(group, {}).get(method)),
        )
    ]


def gains(contest: Contest, scores: Scores, group: str) -> str:
    """What each variant brings beside the base, the most first."""
    others = [name for name in contest.order(scores) if name != _BASE]
    if not others:
        return ""
    found = verdicts(scores, [(name, _BASE) for name in others])
    start = f"Beside {_BASE} ({contest.estimate(scores[_BASE])}){starting(group)}"
    sure = [name for name in others if found[name, _BASE].differ]
    unclear = [name for name in others if found[name, _BASE].few]
    alike = [name for name in others if name not in sure and name not in unclear]
    parts = []
    for words, names in (
        ("more than chance is", sure),
        ("that it is more is not shown for", alike),
    ):
        means = [found[name, _BASE].difference.mean for name in names]
        brought = [span_signed(contest, [mean_]) for mean_ in means]
        every = [f"{size} by {quoted(name)}" for size, name in zip(brought, names, strict=True)]
        if every:
            parts.append(f"{words} {listed(every)}")
    if unclear:
        seeds = max(found[name, _BASE].difference.seeds for name in unclear)
        parts.append(f"{few(unclear, len(others))}: {too_few(seeds)}")
    return f"{start}: {'; '.join(parts)}."


def _left(contest: Contest, scores: Scores, theirs: float | None) -> str:
    """How far the best one still is from the paper."""
    if theirs is None:
        return ""
    best = contest.order(scores)[0]
    gap = theirs - mean(scores[best])
    side = "below" if gap > 0 else "above"
    return f"The best, {quoted(best)}, is {span(contest, [abs(gap)])} {side} the paper's."
