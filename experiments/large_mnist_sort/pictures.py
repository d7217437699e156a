"""Accuracy over n, and curves over the steps: accuracy, loss, temperature (figure 9 of LapSum)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments import panels
from experiments.trials import Column, Trials

WHOLE = Column("whole", "whole order right, %", 1, 100)
_CURVES = {
    "curve_whole": ("whole order right, %", 100.0),
    "curve_loss": ("loss", 1.0),
    "curve_temperature": ("temperature", 1.0),
}


def draw(trials: Trials, path: Path) -> None:
    """A row for each n; above them the accuracies over n, if there are several."""
    from matplotlib.figure import Figure

    arms: dict[int, list[str]] = {}
    for arm in trials.arms:
        arms.setdefault(int(arm.removeprefix("n = ").split(",")[0]), []).append(arm)
    overview = len(arms) > 1
    rows = len(arms) + overview
    figure = Figure(figsize=(15, 3.6 * rows), layout="constrained")
    grid = figure.subplots(rows, len(_CURVES) + 1, squeeze=False)
    for row, size in zip(grid[int(overview) :], sorted(arms), strict=True):
        _curves(row, trials, arms[size], size)
    if overview:
        _over_n(grid[0], trials, sorted(arms))
    figure.suptitle(trials.title, fontsize=11)
    figure.savefig(path, dpi=100)


def _curves(row: Any, trials: Trials, arms: list[str], size: int) -> None:
    for axes, (key, (label, scale)) in zip(row, _CURVES.items(), strict=False):
        panels.curves(axes, trials, key, "curve_step", arms, scale)
        axes.set_xlabel("step")
        axes.set_title(f"n = {size}: {label}", fontsize=9)
    row[2].set_yscale("log")
    row[-1].set_axis_off()
    handles, labels = row[0].get_legend_handles_labels()
    names = [label.split(", ", 1)[1] for label in labels]
    row[-1].legend(handles, names, loc="center left", fontsize=8, frameon=False)


def _over_n(row: Any, trials: Trials, sizes: list[int]) -> None:
    names = list(dict.fromkeys(arm.split(", ", 1)[1] for arm in trials.arms))
    for axes in row[1:]:
        axes.set_axis_off()
    panels.means(row[0], trials, WHOLE, names, sizes, lambda name, n: f"n = {n}, {name}")
    row[0].set_xlabel("n")
    row[0].set_title("test: whole order right, %", fontsize=9)
    handles, labels = row[0].get_legend_handles_labels()
    row[1].legend(handles, labels, loc="center left", fontsize=8, frameon=False)
