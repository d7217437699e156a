"""A row of panels for each part, over n."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.runtime_memory.part import Part
from experiments.trials import Trials

_PANELS = {
    "forward_curve": "forward, ms",
    "both_curve": "forward and backward, ms",
    "forward_memory_curve": "peak of forward, MB",
    "memory_curve": "peak of forward and backward, MB",
    "error_curve": "",
}
_PAGE = 4096 / 1e6  #: megabytes, less than which is not seen
#: where a 0 is drawn
_LEAST = {"forward_memory_curve": _PAGE, "memory_curve": _PAGE, "error_curve": 1e-16}
_WIDTH, _ROW, _HEAD = 20, 3.3, 0.4  #: inches
_OURS = (
    *("C0", "C1", "C2", "C3", "C4", "C5", "C6", "C8", "C9"),  # without the grey one
    *("limegreen", "gold", "slateblue", "darkorange", "orchid", "maroon", "turquoise"),
)
_PUBLISHED = ("black", "dimgray", "darkgray")
_MARKERS = "os^"


def draw(parts: Sequence[Part], trials: Trials, path: Path) -> None:
    """Solid lines are this library's, dashed ones the papers' own algorithms."""
    from matplotlib.figure import Figure

    shown = [part for part in parts if any(arm in trials.arms for arm in part.arms())]
    height = _ROW * len(shown) + _HEAD
    figure = Figure(figsize=(_WIDTH, height))
    rows = figure.subplots(len(shown), len(_PANELS), squeeze=False)
    # by hand: a layout engine would draw every panel twice
    figure.subplots_adjust(0.03, 0.5 / height, 0.87, 1 - (_HEAD + 0.55) / height, 0.2, 0.5)
    colors = _colors(parts)
    for panels, part in zip(rows, shown, strict=True):
        for axes, (key, label) in zip(panels, _PANELS.items(), strict=True):
            _lines(axes, part, trials, key, colors)
            _decorate(axes, label or part.error_label)
        _name(figure, panels, part)
    threads = trials.about.get("threads", "?")
    note = f"threads: {threads}; dashed: as published, in plain torch"
    figure.text(0.03, 1 - 0.3 / height, f"{trials.title}; {note}", fontsize=13)
    figure.savefig(path, dpi=90)


def _name(figure: Any, panels: Sequence[Any], part: Part) -> None:
    """The title of a row above it, its legend to the right."""
    top, right = panels[0].get_position().y1, panels[-1].get_position().x1
    title = f"{part.name}: {part.about}"
    gap = 0.3 / figure.get_figheight()
    figure.text(0.03, top + gap, title, fontsize=11, fontweight="bold")
    lines = {line.get_label(): line for line in panels[0].get_lines()}
    place = {"bbox_to_anchor": (right + 0.005, top + gap), "loc": "upper left"}
    figure.legend(lines.values(), lines, **place, fontsize=8, frameon=False)


def _colors(parts: Sequence[Part]) -> dict[str, str]:
    """The same method has the same colour in every row; "laplace" has the first."""
    every = (_split(name)[1] for part in parts for name in part.ours)
    names = list(dict.fromkeys(["laplace", *every]))
    return {name: _OURS[place % len(_OURS)] for place, name in enumerate(names)}


def _split(name: str) -> tuple[str, str]:
    """What is computed, if the part has several, and by which method."""
    what, _, method = name.rpartition(", ")
    return what, method


def _lines(axes: Any, part: Part, trials: Trials, key: str, colors: dict[str, str]) -> None:
    least = _LEAST.get(key, 0.0)
    for name in part.providers:
        arm = f"{part.name}: {name}"
        style = _style(part, name, colors)
        for record in (r for r in trials.records if r["arm"] == arm and key in r):
            values = [max(value, least) for value in record[key]]
            axes.plot(record["n_curve"], values, label=name, **style)


def _style(part: Part, name: str, colors: dict[str, str]) -> dict[str, Any]:
    if name in part.published:
        color = _PUBLISHED[list(part.published).index(name)]
        return {"color": color, "ls": "--", "lw": 1.6, "marker": "o", "ms": 3}
    what, method = _split(name)
    kinds = list(dict.fromkeys(_split(other)[0] for other in part.ours))
    width = 2.2 if method == "laplace" else 1.3
    marker = _MARKERS[kinds.index(what)]
    return {"color": colors[method], "lw": width, "marker": marker, "ms": 3 if what == "" else 4.5}


def _decorate(axes: Any, label: str) -> None:
    if not axes.get_lines():
        axes.set_axis_off()
        return
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("n", labelpad=-2, fontsize=8)
    axes.set_title(label, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)
