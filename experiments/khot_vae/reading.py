"""What the figures say."""

from __future__ import annotations

from experiments.contest import Contest
from experiments.paper import Paper
from experiments.reading import beside_table, papers_ratio
from experiments.trials import Trials


def split(arm: str) -> tuple[str, str]:
    """Code and data, and the method."""
    code, _, rest = arm.partition(", ")
    data, _, method = rest.partition(", ")
    return f"{code}, {data}", method


CONTESTS = (Contest("loss", "test loss", split=split),)


def read(trials: Trials, paper: Paper) -> list[str]:
    return beside_table(CONTESTS[0], trials, paper, papers_ratio)
