"""All the experiments, for the command line and the documentation."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from experiments import contents, running
from experiments.data.sources import SOURCES, find
from experiments.experiment import Experiment
from experiments.paper import Paper
from experiments.running import Order
from experiments.trials import RESULTS, Trials
from softorder.cli._table import Table


def names() -> list[str]:
    """The folders that have an experiment.py."""
    return sorted(path.parent.name for path in Path(__file__).parent.glob("*/experiment.py"))


def get(name: str) -> Experiment:
    if name not in names():
        raise SystemExit(
            f"softorder reproduce: no experiment {name!r}; there are {', '.join(names())}"
        )
    experiment: Experiment = import_module(f"experiments.{name}.experiment").EXPERIMENT
    return experiment


def listing(output: Path, data: Path | None) -> Table:
    """Each experiment and preset: paper, data and whether it is here, how long it took when the
    results of the repository were made, on one core, and how much is done."""
    table = Table(["experiment", "preset", "paper", "data", "core minutes", "trials done"])
    for name in names():
        experiment = get(name)
        source = Paper.of(experiment).source.split(";")[0].replace(" paper,", "")
        for preset in experiment.presets:
            table.add(name, preset, source, *_state(experiment, preset, output, data))
            name = source = ""
    return table


def _state(experiment: Experiment, preset: str, output: Path, data: Path | None) -> list[str]:
    places: dict[str, list[str]] = {}
    for name in experiment.sources(preset):
        places.setdefault(_where(name, data), []).append(SOURCES[name].title)
    sources = "; ".join(f"{', '.join(titles)}: {place}" for place, titles in places.items())
    published, mine = (
        Trials.read(path) if path.exists() else None
        for path in (root / experiment.name / f"{preset}.json" for root in (RESULTS, output))
    )
    config = experiment.presets[preset]
    total = len(experiment.arms(config)) * config.seeds
    minutes = f"{published.minutes():.1f}" if published else "-"
    done = len(mine.records) if mine else 0
    return [sources or "none to fetch", minutes, f"{done} of {total}"]


def _where(name: str, data: Path | None) -> str:
    if find(name, data):
        return "here"
    return "to be fetched" if SOURCES[name].archives else "missing, no package has it"


def run(experiment: Experiment, order: Order) -> Path:
    """One of them, and the page that leads to all; returns that page."""
    running.run(experiment, order)
    return contents.write(map(get, names()), order.output)


def run_all(order: Order) -> list[str]:
    """One after the other; one that cannot run does not stop the rest. Returns what did not run."""
    able = [name for name in names() if order.preset in get(name).presets]
    if not able:
        raise SystemExit(f"softorder reproduce: no experiment has a preset {order.preset!r}")
    failed = []
    for name in able:
        try:
            run(get(name), order)
        except SystemExit as error:
            print(error)
            failed.append(name)
    return failed
