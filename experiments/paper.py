"""The figures of the papers, kept as data in experiments/NAME/paper.json, beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from experiments.experiment import Experiment
from experiments.trials import Column, Trials
from softorder.cli._table import Table

NOT_RUN = "not run here"


@dataclass(frozen=True)
class Paper:
    """What a paper reports, and where."""

    source: str
    setting: str  #: as the paper states it
    figures: Mapping[str, Mapping[str, str]]  #: by arm and column key, as printed
    differences: Mapping[str, str]  #: by preset: where our setting is another one
    findings: str = ""  #: what figures of the paper show, where it gives no numbers

    @classmethod
    def of(cls, experiment: Experiment) -> Paper:
        kept: dict[str, Any] = json.loads((experiment.folder / "paper.json").read_text("utf-8"))
        return cls(**kept)


def beside(experiment: Experiment, paper: Paper, trials: Trials) -> Table:
    """Our means and standard deviations over the seeds, each beside the paper's figure."""
    given = {key for figures in paper.figures.values() for key in figures}
    headings = ["arm", "seeds"]
    for column in experiment.columns:
        headings += [column.heading, "paper"] if column.key in given else [column.heading]
    table = Table(headings)
    others = [arm for arm in paper.figures if arm not in trials.arms]
    for arm in [*trials.arms, *others]:
        cells = [_ours(trials, arm, column) for column in experiment.columns]
        row = [arm, str(trials.seeds(arm) or NOT_RUN)]
        for column, cell in zip(experiment.columns, cells, strict=True):
            row.append(cell)
            if column.key in given:
                row.append(paper.figures.get(arm, {}).get(column.key, "-"))
        table.add(*row)
    return table


def _ours(trials: Trials, arm: str, column: Column) -> str:
    return column.shown(trials.values(arm, column.key))
