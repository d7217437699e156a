"""The figures of the papers, kept as data in experiments/NAME/paper.json, beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from experiments.experiment import Experiment
from experiments.trials import Column, Trials
from softorder.cli._table import Table

NOT_RUN = "not run here"
PerArm = Mapping[str, Mapping[str, str]]  #: by arm and column key


@dataclass(frozen=True)
class Paper:
    """What a paper reports, and where."""

    source: str
    setting: str  #: as the paper states it
    figures: PerArm  #: as printed
    differences: Mapping[str, str]  #: by preset: where our setting is another one
    findings: str = ""  #: what figures of the paper show, where it gives no numbers
    data: str = ""  #: that the figures are of; beside trials with other data they are not shown
    only: Mapping[str, Any] = field(default_factory=dict)  #: the same for fields of a configuration
    other_data: Mapping[str, PerArm] = field(default_factory=dict)  #: figures of these
    not_run: Mapping[str, str] = field(default_factory=dict)  #: why, of presets without results

    @classmethod
    def of(cls, experiment: Experiment) -> Paper:
        kept: dict[str, Any] = json.loads((experiment.folder / "paper.json").read_text("utf-8"))
        return cls(**kept)

    def figures_for(self, config: Mapping[str, Any]) -> PerArm:
        """Those of the data set that a configuration names, and of its problem."""
        if any(config.get(name, value) != value for name, value in self.only.items()):
            return {}
        data = config.get("data", self.data)
        return self.figures if self.data in ("", data) else self.other_data.get(data, {})


def beside(experiment: Experiment, paper: Paper, trials: Trials) -> Table:
    """Our means and standard deviations over the seeds, each beside the paper's figure; columns
    that no arm has a figure for are left out."""
    variants = trials.config.get("variants")  # of one method: the paper has none of them
    printed = {} if variants else paper.figures_for(trials.config)
    given = {key for figures in printed.values() for key in figures}
    had = given.union(*trials.records)
    columns = [column for column in experiment.columns if column.key in had]
    headings = ["arm", "seeds"]
    for column in columns:
        headings += [column.heading, "paper"] if column.key in given else [column.heading]
    table = Table(headings)
    others = [arm for arm in printed if arm not in trials.arms]
    for arm in [*trials.arms, *others]:
        cells = [_ours(trials, arm, column) for column in columns]
        row = [arm, str(trials.seeds(arm) or NOT_RUN)]
        for column, cell in zip(columns, cells, strict=True):
            row.append(cell)
            if column.key in given:
                row.append(printed.get(arm, {}).get(column.key, "-"))
        table.add(*row)
    return table


def _ours(trials: Trials, arm: str, column: Column) -> str:
    return column.shown(trials.values(arm, column.key))
