"""How the measurements look: time against n, on logarithmic scales."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.timing import Record

_OURS = ("#c2410c", "#f59e0b")
_THEIRS = ("#1d4ed8", "#0f766e", "#7c3aed", "#64748b", "#a16207", "#be185d")


def time_against_n(records: Iterable[Record], path: Path, title: str) -> None:
    """One line per provider, its name at the line's end."""
    lines = _lines(records)
    figure = Figure(figsize=(8, 5), dpi=130, layout="constrained")
    axes = figure.subplots()
    ours, theirs = iter(_OURS), iter(_THEIRS)
    color = ""
    ends: list[tuple[float, int, str, str]] = []
    for name, points in lines.items():
        own, plain = name.startswith("softorder"), "plain" in name
        # the plain torch path has the colour of the line before it
        color = color if plain else next(ours if own else theirs)
        n, milliseconds = zip(*sorted(points), strict=True)
        axes.loglog(n, milliseconds, "--" if plain else "-", color=color, lw=2.4 if own else 1.6)
        ends.append((milliseconds[-1], n[-1], name, color))
    _label_ends(axes, ends)
    _decorate(axes, title)
    figure.savefig(path)


def _lines(records: Iterable[Record]) -> dict[str, list[tuple[int, float]]]:
    lines: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        point = (record.case.shape.n, 1e3 * record.timing.minimum)
        lines.setdefault(record.provider.name, []).append(point)
    return lines


def _label_ends(axes: Axes, ends: list[tuple[float, int, str, str]]) -> None:
    """Names at the ends of the lines, pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = (high / low) ** 0.045
    heights: dict[int, float] = {}
    last = max(n for _, n, _, _ in ends)
    for milliseconds, n, name, color in sorted(ends):
        heights[n] = height = max(milliseconds, heights.get(n, 0.0) * gap)
        # a line that ends early has its name before its end, where no other name is
        side, offset = ("left", (8, 0)) if n == last else ("right", (-2, 8))
        axes.annotate(
            name,
            (n, height),
            offset,
            textcoords="offset points",
            color=color,
            va="center",
            ha=side,
            annotation_clip=False,
        )


def _decorate(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.set_xlabel("n")
    axes.set_ylabel("milliseconds")
    axes.grid(which="major", color="#e5e7eb")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
