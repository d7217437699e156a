"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest
from experiments.knn.config import BASELINES
from experiments.paper import Paper
from experiments.reading import against, is_sweep, leader, papers_gap, papers_order, sweeps
from experiments.trials import Trials

CONTESTS = (Contest("accuracy", "accuracy", True, 2, 100, " %"),)
FEATURES = "kNN on cross-entropy features"


def read(trials: Trials, paper: Paper) -> list[str]:
    contest = CONTESTS[0]
    scores = contest.groups(trials).get("", {})
    if is_sweep(trials):
        return [sweeps(contest, trials)]
    learned = {name: scores[name] for name in scores if name not in BASELINES}
    return [
        against(contest, scores, FEATURES, list(learned)),
        leader(contest, learned) if len(learned) > 1 else "",
        papers_order(contest, trials, paper),
        papers_gap(contest, trials, paper),
    ]
