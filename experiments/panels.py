"""Panels that several experiments draw."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.contest import Pair
from experiments.experiment import Learning
from experiments.trials import Column, Trials


def dots(axes: Any, trials: Trials, column: Column) -> None:
    """An arm to a line: a dot per seed, a bar at the mean."""
    for place, arm in enumerate(trials.arms):
        values = [column.scale * v for v in trials.values(arm, column.key)]
        if values:
            axes.plot(values, [place] * len(values), "o", color="C1", alpha=0.5, ms=4)
            axes.plot([statistics.mean(values)], [place], "|", color="black", ms=12)
    axes.set_title(column.heading, fontsize=9)
    axes.set_yticks(range(len(trials.arms)), trials.arms)
    axes.grid(axis="x", alpha=0.3)


def curves(
    axes: Any, trials: Trials, key: str, over: str, arms: Sequence[str], scale: float = 1.0
) -> None:
    """A curve of every seed, thin, and their mean; all seeds of an arm share its colour."""
    for place, arm in enumerate(arms):
        drawn = [(x, y) for x, y in _both(trials, arm, over, key) if y]
        for x, y in drawn:
            axes.plot(x, [scale * v for v in y], color=f"C{place % 10}", alpha=0.35, lw=0.8)
        if drawn:
            x = min((x for x, _ in drawn), key=len)
            mean = [scale * statistics.mean(y[i] for _, y in drawn) for i in range(len(x))]
            style = "-" if place < 10 else "--"
            axes.plot(x, mean, style, color=f"C{place % 10}", lw=1.6, label=arm)
    axes.grid(alpha=0.3)


def _both(trials: Trials, arm: str, over: str, key: str) -> list[tuple[Any, Any]]:
    """Places and points of every seed; points without places are counted from 1."""
    found = trials.values(arm, key)
    places = trials.values(arm, over) or [range(1, len(curve) + 1) for curve in found]
    return list(zip(places, found, strict=True))


def learning(trials: Trials, what: Learning, split: Callable[[str], Pair], path: Path) -> None:
    """The curves of all arms, a panel for each group; seeds thin, their mean thick."""
    from matplotlib.figure import Figure

    groups: dict[str, list[str]] = {}
    for arm in trials.arms:
        if trials.values(arm, what.key):
            groups.setdefault(split(arm)[0], []).append(arm)
    figure = Figure(figsize=(5.2 * len(groups), 3.4), layout="constrained")
    row = figure.subplots(1, len(groups), squeeze=False)[0]
    for axes, (group, arms) in zip(row, groups.items(), strict=True):
        curves(axes, trials, what.key, what.over, arms, what.scale)
        handles, labels = axes.get_legend_handles_labels()
        axes.legend(handles, [split(label)[1] for label in labels], fontsize=7)
        axes.set_title(group, fontsize=9)
        axes.set_xlabel(what.unit, fontsize=8)
        axes.set_ylabel(what.heading, fontsize=8)
    figure.savefig(path, dpi=100)


def means(
    axes: Any,
    trials: Trials,
    column: Column,
    lines: Sequence[str],
    places: Sequence[float],
    arm: Callable[[str, float], str],
) -> None:
    """The mean of a figure over something that arms differ in, with bars of one deviation.

    `arm(line, place)` is the name of the arm; those that have not been run are left out.
    """
    for number, line in enumerate(lines):
        found = [(place, trials.values(arm(line, place), column.key)) for place in places]
        kept = [(place, [column.scale * v for v in values]) for place, values in found if values]
        if kept:
            axes.errorbar(
                [place for place, _ in kept],
                [statistics.mean(values) for _, values in kept],
                [statistics.stdev(values) if len(values) > 1 else 0.0 for _, values in kept],
                color=f"C{number % 10}", marker="o", ms=4, capsize=2, label=line,
            )  # fmt: skip
    axes.set_ylabel(column.heading)
    axes.grid(alpha=0.3)
