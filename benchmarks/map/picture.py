"""The heat map: a line for every operator and method, a column for every size, both passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle

from benchmarks.cases import Shape

_PASSES = {"forward": "forward", "backward": "forward + backward"}
_LEAST, _MOST = 1 / 16, 256  # ratios where the colours end
_GREY = "#e5e7eb"

Line = tuple[str, str]  # operator, method


def draw(results: Mapping[str, Any], path: Path) -> None:
    """From the map's JSON."""
    lines, shapes = _lines(results), _shapes(results)
    figure = Figure(figsize=(11, 1.6 + 0.19 * len(lines)), dpi=100, layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    for axes, section in zip(panels, _PASSES, strict=True):
        shown = _panel(axes, section, results, lines, shapes)
    _name_lines(panels[0], lines, results)
    bar = figure.colorbar(shown, ax=list(panels), location="top", aspect=60, shrink=0.7, pad=0.01)
    ticks = [1 / 16, 1 / 4, 1, 4, 16, 64, 256]
    bar.set_ticks(np.log2(ticks), labels=["1/16", "1/4", "1", "4", "16", "64", "256"])
    bar.set_label("time over that of the yardstick; grey: left out", fontsize=9)
    figure.savefig(path)


def _lines(results: Mapping[str, Any]) -> list[Line]:
    """In the order in which they were measured; those that were left out everywhere, too."""
    ours = [(c["operator"], c["method"]) for c in results["cells"]]
    skipped = [
        (s["operator"], s["provider"].removeprefix("softorder "))
        for s in results["skipped"]
        if s["provider"].startswith("softorder ")
    ]
    every = dict.fromkeys([*ours, *skipped])
    operators = list(dict.fromkeys(operator for operator, _ in every))
    return sorted(every, key=lambda line: operators.index(line[0]))


def _shapes(results: Mapping[str, Any]) -> list[Shape]:
    found = {Shape(c["rows"], c["n"]) for c in results["cells"]}
    return sorted(found, key=lambda shape: (shape.n * shape.rows, shape.n))


def _panel(
    axes: Axes,
    section: str,
    results: Mapping[str, Any],
    lines: Sequence[Line],
    shapes: Sequence[Shape],
) -> AxesImage:
    ratios = np.full((len(lines), len(shapes)), np.nan)
    for cell in results["cells"]:
        if cell["section"] == section:
            place = lines.index((cell["operator"], cell["method"]))
            column = shapes.index(Shape(cell["rows"], cell["n"]))
            ratios[place, column] = cell["ns"] / cell["yardstick_ns"]
    axes.set_facecolor(_GREY)
    norm = TwoSlopeNorm(0.0, np.log2(_LEAST), np.log2(_MOST))
    shown = axes.imshow(np.log2(ratios), cmap="PuOr_r", norm=norm, aspect="auto")
    for (row, column), ratio in np.ndenumerate(ratios):
        if np.isnan(ratio):
            hatched = Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", lw=0)
            hatched.set_edgecolor("#cbd5e1")
            axes.add_patch(hatched)
        else:
            colour = "white" if ratio > 64 or ratio < 1 / 8 else "black"
            axes.text(
                column, row, _short(ratio), ha="center", va="center", fontsize=6, color=colour
            )
    axes.set_xticks(range(len(shapes)), [str(shape) for shape in shapes], rotation=40, ha="right")
    axes.tick_params(axis="x", labelsize=7)
    axes.set_title(_PASSES[section], fontsize=10)
    for _, members in groupby(range(len(lines)), key=lambda i: lines[i][0]):
        axes.axhline(max(members) + 0.5, color="white", lw=2.5)
    return shown


def _name_lines(axes: Axes, lines: Sequence[Line], results: Mapping[str, Any]) -> None:
    """Methods at the lines, the operator and its yardstick before their first."""
    yardsticks = {c["operator"]: c["yardstick"] for c in results["cells"]}
    labels = []
    for operator, members in groupby(lines, key=lambda line: line[0]):
        for turn, (_, method) in enumerate(members):
            against = f" / {yardsticks[operator]}" if operator in yardsticks else ""
            head = f"{operator}{against}   " if turn == 0 else ""
            labels.append(f"{head}{method}")
    axes.set_yticks(range(len(lines)), labels)
    axes.tick_params(axis="y", labelsize=7, length=0)


def _short(ratio: float) -> str:
    if ratio >= 10:
        return f"{ratio:,.0f}" if ratio < 1e4 else f"{ratio:.0e}".replace("e+0", "e")
    return f"{ratio:.2g}"
