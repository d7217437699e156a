"""Iterations and time of the paper's root finders, and of this library's own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from experiments.experiment import Experiment, Setting, Trial
from experiments.root_finding import finders
from experiments.root_finding.config import PRESETS, Config
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("iterations", "iterations", 2),
    Column("ms", "time, ms", 1),
    Column("log_error", "log10 of the largest error of Σ p = k", 1),
)
OWN = "softorder"

Found = TypeVar("Found")


_BEYOND = ", up to max |x| + "


def arms(config: Config) -> list[str]:
    """With the interval, where several are compared."""
    if len(config.beyond) == 1:
        return list(config.methods)
    return [f"{method}{_BEYOND}{beyond:g}" for method in config.methods for beyond in config.beyond]


def session(config: Config, _setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        x, k = finders.problem(config.n, seed)
        if arm == OWN:
            seconds, found = _fastest(lambda: finders.own(x, k), config.repetitions)
            return _figures(int(found.sweeps.max()), seconds, finders.error(x, k, found))
        method, _, given = arm.partition(_BEYOND)
        beyond = float(given) if given else config.beyond[0]
        seconds, errors = _fastest(lambda: finders.solve(x, k, method, beyond), config.repetitions)
        curve = [max(error, 1e-16) for error in errors]
        return {**_figures(len(errors) - 1, seconds, errors[-1]), "curve": curve}

    return trial


def _fastest(call: Callable[[], Found], repetitions: int) -> tuple[float, Found]:
    """Seconds of the fastest call: what else the machine does can only add to them."""
    least = math.inf
    for _ in range(repetitions):
        start = time.perf_counter()
        found = call()
        least = min(least, time.perf_counter() - start)
    return least, found


def _figures(iterations: int, seconds: float, error: float) -> dict[str, float]:
    log_error = math.log10(max(error, 1e-300))
    return {"iterations": float(iterations), "ms": 1e3 * seconds, "log_error": log_error}


def draw(trials: Trials, path: Path) -> None:
    """Figure 8: the error after every iteration, for the scores of the first seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    colours = {"bisection": "C7", "newton": "C0", "halley": "C1"}
    styles = dict(zip(("", *finders.GUESSES), ("-", ":", "-.", "--", "-"), strict=True))
    for arm in trials.arms:
        method, _, beyond = arm.partition(_BEYOND)
        if beyond not in ("", str(finders.BEYOND)):
            continue
        step, _, guess = method.partition(", ")
        for curve in trials.values(arm, "curve")[:1]:
            axes.semilogy(curve, color=colours[step], ls=styles[guess], label=arm)
    axes.axhline(finders.TOLERANCE, color="0.8")
    axes.set(xlabel="iteration", ylabel="worst error of Σ σ(x + c) = k", title=trials.title)
    axes.grid(alpha=0.3)
    if axes.get_legend_handles_labels()[0]:  # softorder's own solver has no line
        axes.legend(fontsize=7, ncols=2)
    figure.savefig(path, dpi=120)


EXPERIMENT = Experiment(
    name="root_finding",
    title="Root finding: the threshold of a sigmoid top-k",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    timed=True,
    devices=("cpu",),
    draw=draw,
)
