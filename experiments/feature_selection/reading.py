"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, by_first
from experiments.paper import Paper
from experiments.reading import beside_table, papers_ratio, still_moving
from experiments.trials import Trials

CONTESTS = (Contest("loss", "test loss", digits=4, split=by_first),)


def read(trials: Trials, paper: Paper) -> list[str]:
    found = beside_table(CONTESTS[0], trials, paper, papers_ratio)
    return [*found, still_moving(CONTESTS[0], trials)]
