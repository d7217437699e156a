"""How the measurements look: time against n, on logarithmic scales."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks.timing import Record

_OURS = "#c2410c"
_THEIRS = ("#1d4ed8", "#0f766e", "#7c3aed", "#64748b", "#a16207", "#be185d")


def time_against_n(records: Iterable[Record], path: Path) -> None:
    """One line per provider, its name at the line's end."""
    lines = _lines(records)
    figure = Figure(figsize=(8, 5), dpi=130, layout="constrained")
    axes = figure.subplots()
    theirs = iter(_THEIRS)
    ends: list[tuple[float, str, str]] = []
    last = max(n for points in lines.values() for n, _ in points)
    for name, points in lines.items():
        ours = name.startswith("softorder")
        plain = "plain" in name
        color = _OURS if ours else next(theirs)
        n, milliseconds = zip(*sorted(points), strict=True)
        axes.loglog(n, milliseconds, "--" if plain else "-", color=color, lw=2.4 if ours else 1.6)
        ends.append((milliseconds[-1], name, color))
    _label_ends(axes, last, ends)
    _decorate(axes)
    figure.savefig(path)


def _lines(records: Iterable[Record]) -> dict[str, list[tuple[int, float]]]:
    lines: dict[str, list[tuple[int, float]]] = {}
    for record in records:
        point = (record.case.shape.n, 1e3 * record.timing.minimum)
        lines.setdefault(record.provider.name, []).append(point)
    return lines


def _label_ends(axes: Axes, n: int, ends: list[tuple[float, str, str]]) -> None:
    """Names to the right of the lines, pushed apart where they would overlap."""
    low, high = axes.get_ylim()
    gap = (high / low) ** 0.045
    height = 0.0
    for milliseconds, name, color in sorted(ends):
        height = max(milliseconds, height * gap)
        axes.annotate(
            name, (n, height), (8, 0), textcoords="offset points", color=color, va="center"
        )


def _decorate(axes: Axes) -> None:
    axes.set_title("Soft top-k of one row, k = n/10, τ = 0.1, float32, forward", loc="left")
    axes.set_xlabel("n")
    axes.set_ylabel("milliseconds")
    axes.grid(which="major", color="#e5e7eb")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
