"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, by_first
from experiments.paper import Paper
from experiments.reading import beside_table, papers_gap
from experiments.trials import Trials

CONTESTS = (
    Contest("whole", "share of whole orders right", True, 1, 100, " %", by_first),
    Contest("places", "share of places right", True, 1, 100, " %", by_first, deciding=False),
)


def read(trials: Trials, paper: Paper) -> list[str]:
    return beside_table(CONTESTS[0], trials, paper, papers_gap)
