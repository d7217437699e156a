"""What the comparing examples share: arms, tuned alike, with seeds; a table, a figure, a reading.

Not an example itself. A `Study` has a function `trial(arm, seed, setting, config)` that returns
figures, among them "validation", by which every arm is tuned with a seed of its own, on samples
that no table has seen. An arm has a few settings with a few values each, the first of which it
begins with: one setting after the other, the best value is kept. All arms of a study have as many
values to try, so that none is tuned better than another. What was run is kept after every trial: a
run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from experiments.contest import Contest
from experiments.panels import curves, dots
from experiments.reading import against, leader
from experiments.trials import Column, Figures, Trials
from softorder.cli._progress import Progress
from softorder.cli._table import Table

RESULTS = Path(__file__).parent / "results"
TUNING = 1000  #: the seed with which settings are chosen
FINER = (1.0, 0.6, 1.7)  #: of the learning rate, for an arm that has nothing else to be tuned

Setting = Mapping[str, float]


@dataclass(frozen=True)
class Study:
    """A comparison that can be run."""

    name: str  #: of its file
    title: str
    arms: Sequence[str]
    trial: Callable[[str, int, Setting, Any], Figures]
    settings: Callable[[str], Mapping[str, Sequence[float]]]  #: the values of those of an arm
    full: Any  #: a dataclass with a field `seeds`
    quick: Any
    columns: Sequence[Column]
    contests: Sequence[Contest]
    baselines: Sequence[str]  #: the best of them is what the others are held against
    draw: Callable[[Trials, Path], None]
    higher: bool = True  #: is better, in validation

    @property
    def command(self) -> str:
        return f"python -m examples.{self.name}"


def run(study: Study, quick: bool, output: Path | None, fresh: bool = False) -> Trials:
    """Every arm with every seed; written to the output, if there is one."""
    torch.set_num_threads(1)  # the networks are small
    config = study.quick if quick else study.full
    trials = _begin(study, config, output, fresh)
    done = partial(_keep, study, trials, output)
    left = [(arm, s) for s in range(config.seeds) for arm in study.arms if not trials.find(arm, s)]
    tuned: dict[str, dict[str, float]] = trials.config["chosen"]
    untuned = [arm for arm in study.arms if arm not in tuned]
    with Progress(len(left) + sum(0 if quick else _tries(study, arm) for arm in untuned)) as bar:
        for arm in untuned:
            first = {name: values[0] for name, values in study.settings(arm).items()}
            tuned[arm] = first if quick else _choose(study, arm, first, config, bar)
            done()
        for arm, seed in left:
            trials.add(arm, seed, {**tuned[arm], **study.trial(arm, seed, tuned[arm], config)})
            done()
            bar.step(f"{study.name}: {arm}, seed {seed}")
    if output is not None:
        _write(study, trials, output)
    print(f"{trials.title}\n\n{table(study, trials).text()}\n\n{reading(study, trials)}")
    return trials


def _tries(study: Study, arm: str) -> int:
    """How many values there are to be tried, the ones to begin with counted once."""
    several = [len(values) for values in study.settings(arm).values() if len(values) > 1]
    return sum(several) - len(several) + bool(several)


def _choose(
    study: Study, arm: str, first: dict[str, float], config: Any, bar: Progress
) -> dict[str, float]:
    """The best value of one setting after the other."""
    best, found = first, float("nan")
    for name, values in study.settings(arm).items():
        for value in values if len(values) > 1 else ():
            tried = {**best, name: value}
            if tried == best and found == found:  # where the setting before was chosen
                continue
            figure = study.trial(arm, TUNING, tried, config)["validation"]
            better = figure > found if study.higher else figure < found
            if better or found != found:
                best, found = tried, figure
            bar.step(f"{study.name}: {arm}, tried with {name} {value:g}")
    return best


def _begin(study: Study, config: Any, output: Path | None, fresh: bool) -> Trials:
    values = {arm: study.settings(arm) for arm in study.arms}
    kept = json.loads(json.dumps({**asdict(config), "settings": values, "chosen": {}}))
    path = None if output is None else output / f"{study.name}.json"
    if path is None or fresh or not path.exists():
        return Trials(study.title, kept)
    trials = Trials.read(path)
    free = {"seeds", "chosen"}
    changed = [key for key in kept if key not in free and trials.config.get(key) != kept[key]]
    if changed:
        raise SystemExit(
            f"{path} was made with other values of {', '.join(changed)}. Give --fresh to "
            "replace it, or another --output"
        )
    return trials


def _keep(study: Study, trials: Trials, output: Path | None) -> None:
    trials.sort(study.arms)
    if output is not None:
        trials.write(output / f"{study.name}.json")


def _write(study: Study, trials: Trials, output: Path) -> None:
    """The table with what it says, and the figure."""
    text = f"{table(study, trials).markdown()}\n\n{reading(study, trials)}\n"
    (output / f"{study.name}.md").write_text(text, encoding="utf-8")
    study.draw(trials, output / f"{study.name}.png")


def table(study: Study, trials: Trials) -> Table:
    """Means and standard deviations over the seeds; the setting is the same for all of them."""
    made = Table(["", "seeds", *(column.heading for column in study.columns)])
    for arm in trials.arms:
        found = ((column, trials.values(arm, column.key)) for column in study.columns)
        same = study.settings(arm)
        cells = (c.shown(values[:1] if c.key in same else values) for c, values in found)
        made.add(arm, str(trials.seeds(arm)), *cells)
    return made


def reading(study: Study, trials: Trials) -> str:
    """What the table says: who is best, and how the others stand beside the best baseline."""
    sentences = []
    for contest in study.contests:
        scores = contest.groups(trials).get("", {})
        bases = [arm for arm in study.baselines if arm in scores]
        ours = [arm for arm in scores if arm not in bases]
        if len(scores) > 1:
            sentences.append(leader(contest, scores))
        if bases and ours:
            best = contest.order({arm: scores[arm] for arm in bases})[0]
            sentences.append(against(contest, scores, best, ours, bases))
    return " ".join(sentences)


def dots_of(*columns: Column) -> Callable[[Trials, Path], None]:
    """A figure with a panel for each column: a dot for every seed, a bar at the mean."""

    def draw(trials: Trials, path: Path) -> None:
        from matplotlib.figure import Figure

        size = (2.4 + 3.3 * len(columns), 1.2 + 0.3 * len(trials.arms))
        figure = Figure(figsize=size, layout="constrained")
        row = figure.subplots(1, len(columns), sharey=True)
        for axes, column in zip(row, columns, strict=True):
            dots(axes, trials, column)
        row[0].invert_yaxis()
        figure.suptitle(trials.title, fontsize=10)
        figure.savefig(path, dpi=120)

    return draw


def curves_of(
    key: str, over: str, scale: float, finish: Callable[[Any, Trials], None]
) -> Callable[[Trials, Path], None]:
    """A figure with a curve for each arm that has one; `finish` labels the axes."""

    def draw(trials: Trials, path: Path) -> None:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axes = figure.subplots()
        having = [arm for arm in trials.arms if any(trials.values(arm, key))]
        curves(axes, trials, key, over, having, scale)
        finish(axes, trials)
        axes.set_title(trials.title, fontsize=10)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
        figure.savefig(path, dpi=120)

    return draw


def main(study: Study, about: str | None, arguments: Sequence[str] | None = None) -> Trials:
    """The command line of an example; `about` is its docstring."""
    parser = argparse.ArgumentParser(
        prog=study.command,
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--quick", action="store_true", help="seconds instead of minutes: fewer steps, small data"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="folder for NAME.json, NAME.md and NAME.png; by default examples/results, and none "
        "with --quick",
    )
    parser.add_argument("--fresh", action="store_true", help="forget what was run before")
    given = parser.parse_args(arguments)
    output = given.output or (None if given.quick else RESULTS)
    return run(study, given.quick, output, given.fresh)
