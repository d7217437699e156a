"""What the page about performance shows of the map, the goals, growth and instructions.

python -m benchmarks.performance_page      writes docs/snippets/performance.md
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.figures import Figure, tables
from benchmarks.growth_page import growth_table, sentence
from benchmarks.jobs import FOLDER
from benchmarks.map.measure import PASSES
from benchmarks.map.results import NOTE, Cell, table
from benchmarks.map.results import number as in_three_digits
from softorder.cli._table import Table, plain

SNIPPET = Path("docs", "snippets", "performance.md")
_WORST = 25
_FLOAT = 4

Results = Mapping[str, Any]


def page(folder: Path = FOLDER) -> str:
    """The whole snippet, from the JSON of four suites."""
    note = "<!-- Written by `python -m benchmarks.performance_page`. -->"
    parts = (_part(folder, name, *how) for name, how in _PARTS.items())
    return "\n\n".join([note, *parts]) + "\n"


def _part(folder: Path, suite: str, title: str, tell: Callable[[Results], list[str]]) -> str:
    kept = folder / f"{suite}.json"
    command = f"Made by `softorder bench {suite}`"
    if not kept.exists():
        return f"## {title}\n\n{command}; not run yet on a quiet machine."
    results = json.loads(kept.read_text())
    where = ", ".join(f"{name} {value}" for name, value in results["machine"].items())
    return "\n\n".join([f"## {title}", f"{command} on: {plain(where)}.", *tell(results)])


# ---- goals -------------------------------------------------------------------------------------


def _goals(results: Results) -> list[str]:
    keys = ("table", "row", "column", "value", "limit")
    found = [Figure(**{key: one[key] for key in keys}) for one in results["figures"]]
    promised = [figure for figure in found if figure.limit is not None]
    counts = (
        f"{sum(f.reached for f in here)} of {len(here)} goals are reached with {plain(level)}"
        for level, here in _by(promised, lambda figure: figure.column).items()
    )
    blocks = [f"### {plain(title)}\n\n{t.markdown()}" for title, t in tables(found).items()]
    about = (
        "Every figure is a time over that of what stands behind the × in its title, both the "
        "fastest of many calls that alternate in one run, then the worst of the row's cases. The "
        "libraries of two SIMD levels run on one CPU, torch at the same level: `avx2` is what most "
        "CPUs have."
    )
    image = "![Time over that of softmax and sort, beside the goals](goals.png)"
    return [about, "; ".join(counts) + ".", image, *blocks]


def _by(items: list[Any], key: Callable[[Any], str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


# ---- the map -----------------------------------------------------------------------------------


def _map(results: Results) -> list[str]:
    cells = [Cell(**cell) for cell in results["cells"]]
    return [
        NOTE,
        "![Time of every operator and method over that of its yardstick, by size](map.png)",
        "### By operator",
        _by_operator(cells).markdown(),
        f"### The {_WORST} worst",
        table(sorted(cells, key=lambda cell: -cell.ratio)[:_WORST]).markdown(),
        "All cells are in `benchmarks/results/map.md`.",
        "### Left out, from which size on",
        _left_out(results).markdown(),
        "### What keeps more than it needs",
        *_memory(results),
    ]


def _by_operator(cells: list[Cell]) -> Table:
    found = Table(["operator", "yardstick", "cells", "median ratio", "no slower", "best", "worst"])
    for operator, members in groupby(sorted(cells, key=_operator), _operator):
        here = list(members)
        ratios = [cell.ratio for cell in here]
        best, worst = min(here, key=_ratio), max(here, key=_ratio)
        equal = f"{sum(ratio <= 1 for ratio in ratios)}"
        middle = in_three_digits(median(ratios))
        found.add(operator, here[0].yardstick, str(len(here)), middle, equal, _at(best), _at(worst))
    return found


def _operator(cell: Cell) -> str:
    return cell.operator


def _ratio(cell: Cell) -> float:
    return cell.ratio


def _at(cell: Cell) -> str:
    return f"{in_three_digits(cell.ratio)} ({cell.method}, {cell.rows:,}×{cell.n:,})"


def _left_out(results: Results) -> Table:
    """The first size of every line, and why."""
    first: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for one in results["skipped"]:
        first.setdefault((one["operator"], one["provider"], one["section"]), one)
    found = Table(["operator", "who", "pass", "from", "why"])
    for (operator, who, section), one in first.items():
        found.add(operator, who, PASSES[section], f"{one['rows']:,}×{one['n']:,}", one["why"])
    return found


def _memory(results: Results) -> list[str]:
    if not results["memory"]:
        return ["Not measured."]
    rows, n = results["memory"][0]["rows"], results["memory"][0]["n"]
    marked = sorted((m for m in results["memory"] if m["too_much"]), key=lambda m: -m["saved"])
    told = (
        f"Bytes per score at {rows:,}×{n:,}: the peak of a forward call, its result included, and "
        "what is kept for backward; a float32 has 4. Shown is what keeps more than twice its input "
        f"beyond what its formula needs: {len(marked) or 'none'} of {len(results['memory'])} lines "
        "of the map."
    )
    if not marked:
        return [told]
    found = Table(["operator", "method", "peak, forward", "kept", "needs"])
    for one in marked:
        peak = "" if one["forward"] is None else f"{one['forward'] / rows / n:.1f}"
        count, _, which = one["needs"].partition(": ")
        needs = f"{_FLOAT * int(count)}: {which}"
        method = one["provider"].removeprefix("softorder ")
        found.add(one["operator"], method, peak, f"{one['saved'] / rows / n:.1f}", needs)
    return [told, found.markdown()]


# ---- growth and instructions -------------------------------------------------------------------


def _growth(results: Results) -> list[str]:
    size, ways, line = map(int, results["cache"].split(","))
    about = (
        "One row; all sizes alternate in one run. Misses are of the last cache, per score, "
        f"simulated by valgrind for one core with this machine's {size / 2**20:.0f} MiB "
        f"({ways} ways, lines of {line} bytes), in a second call, when all that fits is "
        "in the cache."
    )
    image = "![Time and cache misses per score against n](growth.png)"
    return [about, image, growth_table(results).markdown(), sentence(results)]


def _instructions(results: Results) -> list[str]:
    about = (
        "Counted by callgrind within the kernel, on one thread: no other process can disturb it, "
        "so a change of one part in a hundred shows (`softorder bench --against "
        "benchmarks/results/instructions.json`). Per score, the worst of four k and temperatures."
    )
    worst: dict[tuple[str, str], float] = {}
    for one in results["instructions"]:
        row = f"{one['rows']:,}×{one['n']:,} {one['density']}"
        cell = (f"{one['kernel']}, {one['section']}", row)
        worst[cell] = max(worst.get(cell, 0.0), one["per_score"])
    columns = list(dict.fromkeys(column for column, _ in worst))
    found = Table(["", *columns])
    for row in dict.fromkeys(row for _, row in worst):
        found.add(row, *(f"{worst[column, row]:.2f}" for column in columns))
    return [about, found.markdown()]


_PARTS: dict[str, tuple[str, Callable[[Results], list[str]]]] = {
    "goals": ("Goals, at two SIMD levels", _goals),
    "map": ("The map: every operator, method and size", _map),
    "growth": ("Rank and sort as n doubles", _growth),
    "instructions": ("Instructions per score", _instructions),
}


if __name__ == "__main__":
    SNIPPET.write_text(page())
    print(f"wrote {SNIPPET}")
