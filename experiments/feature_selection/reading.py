"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest, by_first
from experiments.paper import Paper
from experiments.reading import beside_table, papers_ratio, still_moving
from experiments.trials import Trials

CONTESTS = (
    Contest("loss", "test loss", digits=4, split=by_first),
    Contest(
        "least",
        "least test loss of an epoch",
        digits=4,
        split=by_first,
        deciding=False,
        figure="loss",
    ),
)


def read(trials: Trials, paper: Paper) -> list[str]:
    found = beside_table(CONTESTS[0], trials, paper, papers_ratio)
    least = papers_ratio(CONTESTS[1], trials, paper)
    return [*found, least, still_moving(CONTESTS[0], trials)]
