"""One thing varies at a time: the curves behind the papers' choices."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from experiments.data import SOURCES
from experiments.experiment import Experiment, Setting, Trial
from experiments.topk_classification.candidates import Protocol
from experiments.topk_classification.data import load, source
from experiments.topk_classification.splits import Data
from experiments.topk_classification.training import run
from experiments.topk_classification.tuning import tuned
from experiments.topk_sweeps.config import PRESETS, Config
from experiments.topk_sweeps.points import SWEEPS, Point, mixture, points
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("top1", "top-1, %", 2, 100),
    Column("top5", "top-5, %", 2, 100),
    Column("temperature", "τ", 2),
)


def named(config: Config) -> dict[str, Point]:
    return {str(point): point for point in points(config)}


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    @cache
    def data() -> Data:
        return load(config.data, config.small, setting)

    @cache
    def temperature() -> float:
        """Chosen once, halfway between k = 1 and k = 5."""
        start = mixture(0.5, Protocol(config.m, config.top1))
        return tuned(data(), start, config.tuning).temperature

    def trial(arm: str, seed: int) -> Figures:
        point = named(config)[arm]
        loss = point.candidate
        if point.sweep != "temperature":
            loss = loss.at(temperature())
        result = run(data(), loss, seed, data().test)
        return {"top1": result.top1, "top5": result.top5, "temperature": loss.temperature}

    return trial


def draw(trials: Trials, path: Path) -> None:
    """A column for each thing that varies: top-1 above, top-5 below; bars are of the seeds."""
    from matplotlib.figure import Figure

    found = [_point(arm) for arm in trials.arms]
    sweeps = [sweep for sweep in SWEEPS if any(sweep == s for s, _, _ in found)]
    figure = Figure(figsize=(1 + 3.2 * len(sweeps), 5.5), layout="constrained")
    panels = figure.subplots(2, len(sweeps), squeeze=False, sharex="col")
    for column, sweep in enumerate(sweeps):
        curves = dict.fromkeys(curve for s, _, curve in found if s == sweep)
        for row, figure_of in enumerate(COLUMNS[:2]):
            axes = panels[row][column]
            for curve in curves:
                xs, means, spreads = zip(*_curve(trials, sweep, curve, figure_of.key), strict=True)
                means, spreads = ([100 * value for value in part] for part in (means, spreads))
                axes.errorbar(xs, means, spreads, marker="o", ms=3, capsize=2, label=curve)
            axes.set(ylabel=figure_of.heading)
            axes.grid(alpha=0.3)
            if sweep == "temperature":
                axes.set_xscale("log")
        panels[1][column].set(xlabel=SWEEPS[sweep])
        panels[0][column].legend(fontsize=7)
    figure.suptitle(trials.title, fontsize=10)
    figure.savefig(path, dpi=120)


def _point(arm: str) -> tuple[str, float, str]:
    """Sweep, x and curve, from the name of an arm."""
    place, curve = arm.split(", ", 1)
    sweep, x = place.split(" = ")
    return sweep, float(x), curve


def _curve(
    trials: Trials, sweep: str, curve: str, key: str
) -> Iterator[tuple[float, float, float]]:
    """x, mean and standard deviation of every point."""
    for arm in trials.arms:
        of, x, name = _point(arm)
        if (of, name) == (sweep, curve):
            values = trials.values(arm, key)
            yield x, statistics.mean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def needs(config: Config, _arm: str) -> tuple[str, ...]:
    return tuple({source(config.data)} & SOURCES.keys())


EXPERIMENT = Experiment(
    name="topk_sweeps",
    title="Top-k classification: temperature, p_k and m",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: list(named(config)),
    session=session,
    shared=lambda arm, seed: arm.split(" = ")[0],  # a temperature
    needs=needs,
    draw=draw,
)
