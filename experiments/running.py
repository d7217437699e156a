"""Runs an experiment: what was done before is not done again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from experiments.data import locate
from experiments.experiment import Experiment, Setting
from experiments.paper import Paper, beside
from experiments.report import write
from experiments.trials import Trials, machine
from experiments.workers import Done, Plan, Task, cores, here, side_by_side, threads
from softorder.cli._progress import Progress


@dataclass(frozen=True)
class Order:
    """What is asked for."""

    preset: str = "quick"
    seeds: int | None = None  #: instead of the preset's number
    arms: Sequence[str] = ()  #: only these
    jobs: int | None = None  #: processes; None for one per core, on a GPU one
    fresh: bool = False  #: forget what was done before
    output: Path = Path("results")
    setting: Setting = field(default_factory=Setting)


def run(experiment: Experiment, order: Order) -> Trials:
    """Every arm with every seed. Results are written after each trial: nothing is lost."""
    config = experiment.presets[_preset(experiment, order.preset)]
    _device(experiment, order.setting.device)
    arms = _arms(experiment, config, order)
    seeds = config.seeds if order.seeds is None else order.seeds
    path = order.output / experiment.name / f"{order.preset}.json"
    trials = begin(experiment, order, path)
    left = [(arm, s) for s in range(seeds) for arm in arms if trials.find(arm, s) is None]
    done = len(arms) * seeds - len(left)
    if done:
        print(f"{experiment.name}: {done} trials are in {path} already", file=sys.stderr)
    with Progress(len(left)) as bar:
        for arm, seed, figures in _outcomes(experiment, order, trials, left):
            trials.add(arm, seed, figures)
            trials.sort(experiment.arms(config))
            trials.write(path)
            bar.step(f"{experiment.name}: {arm}, seed {seed}")
    pages = write(experiment, order.output)
    table = beside(experiment, Paper.of(experiment), trials)
    print(f"{trials.title}\n\n{table.text()}\n\nwritten: {path}, {', '.join(map(str, pages))}\n")
    return trials


def _outcomes(
    experiment: Experiment, order: Order, trials: Trials, left: Sequence[Task]
) -> Iterator[Done]:
    """The trials that are left, as they come."""
    config = experiment.presets[order.preset]
    units = _units(left, experiment.shared)
    plan = Plan(experiment.session, config, order.setting, trials)
    jobs = min(_jobs(experiment, order), len(units))
    return here(plan, left) if jobs <= 1 else side_by_side(plan, units, jobs)


def _units(tasks: Sequence[Task], shared: Callable[[str, int], object]) -> list[list[Task]]:
    """What may run side by side."""
    units: dict[object, list[Task]] = {}
    for arm, seed in tasks:
        units.setdefault(shared(arm, seed), []).append((arm, seed))
    return list(units.values())


def _jobs(experiment: Experiment, order: Order) -> int:
    """Where time is what is measured, nothing else may run."""
    if experiment.timed:
        return 1
    if order.jobs is not None:
        return order.jobs
    return cores() if torch.device(order.setting.device).type == "cpu" else 1


def begin(experiment: Experiment, order: Order, path: Path) -> Trials:
    """What was done with the same configuration; another one is not mixed in silently."""
    config = experiment.config(order.preset)
    if order.fresh or not path.exists():
        jobs = _jobs(experiment, order)
        about = {**machine(), "threads": threads(jobs), "processes": jobs}
        return Trials(f"{experiment.title}, preset {order.preset}", config, about=about)
    trials = Trials.read(path)
    changed = _changes(trials.config, config)
    if changed:
        raise SystemExit(
            f"{path} was made with another configuration: {changed}. "
            "Give --fresh to replace it, or another --output"
        )
    trials.config = config  # arms and seeds may be more by now
    return trials


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What is compared, and how often, may be added to; all else has to be the same."""
    free = {"seeds", "arms", "methods", "variants"}
    names = sorted((old.keys() | new.keys()) - free)
    differ = (name for name in names if old.get(name) != new.get(name))
    return ", ".join(f"{name} {old.get(name)!r}, now {new.get(name)!r}" for name in differ)


def _preset(experiment: Experiment, preset: str) -> str:
    if preset not in experiment.presets:
        known = ", ".join(experiment.presets)
        raise SystemExit(f"{experiment.name} has no preset {preset!r}; it has {known}")
    return preset


def _device(experiment: Experiment, device: str) -> None:
    kind = torch.device(device).type
    if kind not in experiment.devices:
        able = ", ".join(experiment.devices)
        raise SystemExit(f"{experiment.name} runs on {able}, not on {device!r}")


def _arms(experiment: Experiment, config: Any, order: Order) -> list[str]:
    """Those that were asked for and have their data; without any there is nothing to run."""
    known = list(experiment.arms(config))
    unknown = [arm for arm in order.arms if arm not in known]
    if unknown:
        raise SystemExit(f"{experiment.name} has no arm {unknown}; it has {known}")
    chosen = [arm for arm in known if not order.arms or arm in order.arms]
    missing: dict[str, str] = {}
    for name in dict.fromkeys(name for arm in chosen for name in experiment.needs(config, arm)):
        try:
            locate(name, order.setting.data, order.setting.fetch)
        except SystemExit as error:
            missing[name] = str(error)
    able = [arm for arm in chosen if not missing.keys() & set(experiment.needs(config, arm))]
    if not able:
        raise SystemExit("\n".join(missing.values()))
    for text in missing.values():
        print(text, file=sys.stderr)
    return able
