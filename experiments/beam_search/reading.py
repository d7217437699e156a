"""What the figures say."""

from __future__ import annotations

import statistics

from experiments.contest import Contest, Scores, verdicts
from experiments.paper import Paper
from experiments.reading import against, claim, sides
from experiments.trials import Trials
from experiments.words import listed

CONTESTS = (
    Contest("phones", "phone errors", digits=2, scale=100, unit=" %", time="tuning"),
    Contest("words", "word errors", digits=2, scale=100, unit=" %", deciding=False),
)
_BASE, _LONGER = "teacher forcing", "teacher forcing, same time"


def read(trials: Trials, _paper: Paper) -> list[str]:
    scores = CONTESTS[0].groups(trials).get("", {})
    soft = [arm for arm in scores if arm.startswith("soft beam")]
    return [
        against(CONTESTS[0], scores, _BASE, [arm for arm in scores if arm != _BASE]),
        against(CONTESTS[0], scores, _LONGER, soft),
        _cost(trials, soft),
        _claimed(scores, soft),
    ]


def _cost(trials: Trials, soft: list[str]) -> str:
    """Of an update, by the median over the seeds."""
    seconds = {}
    for arm in (_BASE, *soft):
        pairs = zip(trials.values(arm, "tuning"), trials.values(arm, "updates"), strict=True)
        each = [tuning / updates for tuning, updates in pairs if updates]
        if each:
            seconds[arm] = statistics.median(each)
    if _BASE not in seconds or len(seconds) < 2:
        return ""
    ratios = [f"{seconds[arm] / seconds[_BASE]:.1f}" for arm in soft if arm in seconds]
    return f"An update through the search takes {listed(ratios)} times as long."


def _claimed(scores: Scores, soft: list[str]) -> str:
    """With as many updates, as in the paper."""
    if _BASE not in scores or not soft:
        return ""
    better, _, _, unclear = sides(CONTESTS[0], verdicts(scores, [(arm, _BASE) for arm in soft]))
    shown = None if len(unclear) == len(soft) else bool(better)
    return claim("training through the search gains over teacher forcing alone", shown)
