"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, Scores
from experiments.knn.config import BASELINES, ON_CROSS_ENTROPY, VARIANTS
from experiments.paper import Paper
from experiments.reading import against, gains, is_sweep, leader, papers_gap, papers_order, sweeps
from experiments.trials import Trials
from experiments.words import FEW_NAMES, named

CONTESTS = (Contest("accuracy", "accuracy", True, 2, 100, " %"),)
_AGREEMENT = Contest("agreement", "cosine of two batches' gradients at the start", True, 3)


def read(trials: Trials, paper: Paper) -> list[str]:
    contest = CONTESTS[0]
    scores = contest.groups(trials).get("", {})
    if trials.config.get("variants"):
        return _why(trials, scores)
    if is_sweep(trials):
        return [sweeps(contest, trials)]
    learned = {name: scores[name] for name in scores if name not in BASELINES}
    return [
        against(contest, scores, ON_CROSS_ENTROPY, list(learned)),
        leader(contest, learned) if len(learned) > 1 else "",
        papers_order(contest, trials, paper),
        papers_gap(contest, trials, paper),
        _at_an_end(trials),
    ]


def _at_an_end(trials: Trials) -> str:
    """Arms for which a temperature outside of those that were tried might be better."""
    tried = trials.config.get("factors", ())
    if len(tried) < 2:
        return ""
    taken = {arm: set(trials.values(arm, "factor")) for arm in trials.arms}
    taken = {arm: factors for arm, factors in taken.items() if factors}
    ends = [arm for arm, factors in taken.items() if factors & {min(tried), max(tried)}]
    if not ends:
        return ""
    who = named(ends) if len(ends) <= FEW_NAMES else f"{len(ends)} of {len(taken)} arms"
    return f"The temperature that was chosen is at an end of those that were tried for {who}."


def _why(trials: Trials, scores: Scores) -> list[str]:
    """What each variant brings, whether features of cross-entropy are still better, and how far
    gradients depend on the batch."""
    soft = [name for name in scores if name != ON_CROSS_ENTROPY]
    cosines = _AGREEMENT.groups(trials).get("", {})
    return [
        gains(CONTESTS[0], {name: scores[name] for name in soft}, next(iter(VARIANTS))),
        against(CONTESTS[0], scores, ON_CROSS_ENTROPY, soft),
        against(_AGREEMENT, cosines, ON_CROSS_ENTROPY, soft),
    ]
