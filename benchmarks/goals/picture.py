"""The goals as a picture: figures of top-k, rank and sort beside their goals, level by level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

_COLOURS = ("#2563eb", "#c2410c", "#059669")
_TABLES = ("soft_topk", "Rank and sort")  # how the titles of what is drawn begin


def draw(figures: Sequence[Mapping[str, Any]], path: Path) -> bool:
    """From the list of figures of the suite's JSON; nothing where none of them is measured."""
    tables = [t for t in dict.fromkeys(f["table"] for f in figures) if t.startswith(_TABLES)]
    if not tables:
        return False
    rows = {t: list(dict.fromkeys(f["row"] for f in figures if f["table"] == t)) for t in tables}
    heights = [len(rows[table]) for table in tables]
    picture = Figure(figsize=(8, 1.5 + 0.19 * sum(heights)), dpi=110, layout="constrained")
    panels = picture.subplots(len(tables), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, table in zip(panels, tables, strict=True):
        _panel(axes, table, rows[table], [f for f in figures if f["table"] == table])
    handles, labels = panels[0].get_legend_handles_labels()
    picture.legend(handles, labels, frameon=False, fontsize=8, ncols=4, loc="outside upper right")
    picture.savefig(path)
    return True


def _panel(
    axes: Axes, title: str, rows: Sequence[str], figures: Sequence[Mapping[str, Any]]
) -> None:
    levels = list(dict.fromkeys(f["column"] for f in figures))
    for level, colour in zip(levels, _COLOURS, strict=False):
        here = {f["row"]: f["value"] for f in figures if f["column"] == level}
        places = [rows.index(row) for row in here]
        axes.plot(list(here.values()), places, "o", ms=4, color=colour, label=level)
    limits = {f["row"]: f["limit"] for f in figures if f["limit"] is not None}
    for turn, (row, limit) in enumerate(limits.items()):
        place, label = rows.index(row), "goal" if turn == 0 else None
        axes.plot([limit] * 2, [place - 0.4, place + 0.4], "-", color="#475569", lw=2, label=label)
    axes.set_yticks(range(len(rows)), rows, fontsize=7)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.set_title(title, fontsize=9, loc="left")
    axes.grid(axis="x", color="#e5e7eb")
    axes.spines[["top", "right"]].set_visible(False)
