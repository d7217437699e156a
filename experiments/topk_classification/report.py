"""The table, the plot, and what the papers found, checked."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

from experiments.topk_classification.candidates import METHODS, MIXED
from experiments.topk_classification.data import NAMES
from experiments.topk_classification.training import Result
from softorder.cli._table import Table

_COLOURS = {"1": "#111827", "5": "#2563eb", "1 and 5": "#c2410c", "1 to 5": "#ca8a04"}
_MARKS = "os^Dv*PX<>h"

Cell = tuple[str, str]  # method and k


def table(results: Sequence[Result]) -> Table:
    """Mean and standard deviation over the seeds, in per cent."""
    found = Table(["loss", "k", "τ", "top-1 %", "top-5 %"])
    for (method, k), runs in _cells(results).items():
        found.add(
            method,
            k,
            "" if method == "softmax" else f"{runs[0].temperature:g}",
            _spread([run.top1 for run in runs]),
            _spread([run.top5 for run in runs]),
        )
    return found


def verdict(results: Sequence[Result]) -> str:
    """Does mixing k beat a single k on top-5, without losing top-1?"""
    cells = _cells(results)
    softmax = cells.get(("softmax", "1"))
    if softmax is None:
        return "No verdict without softmax."
    lines = []
    for mixed in MIXED:
        methods = [method for method, k in cells if k == mixed]
        pairs = [(cells[method, mixed], cells[method, "5"]) for method in methods]
        gains = {
            f"{name} {than}": sum(_mean(mix, what) > _mean(other, what) for mix, other in rivals)
            for than, rivals in (
                ("softmax", [(mix, softmax) for mix, _ in pairs]),
                ("k = 5 alone", pairs),
            )
            for name, what in (("top-1 above", "top1"), ("top-5 above", "top5"))
        }
        counts = "; ".join(f"{name}: {hits} of {len(pairs)}" for name, hits in gains.items())
        lines.append(f"k = {mixed}, means over the seeds, by method. {counts}.")
    return "\n".join(lines)


def write(folder: Path, results: Sequence[Result]) -> Iterable[Path]:
    """The numbers of one data set; tables and a plot of all that are there. Names the files.

    What the file has of methods that were not run again stays.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{results[0].data}.json"
    again = {result.method for result in results}
    results = [*results, *(old for old in read(path) if old.method not in again)]
    results = sorted(results, key=lambda result: (METHODS.index(result.method), result.seed))
    rows = ",\n".join(json.dumps(asdict(result)) for result in results)
    path.write_text(f"[\n{rows}\n]\n")
    yield path
    everything = [result for name in NAMES for result in read(folder / f"{name}.json")]
    names = list(dict.fromkeys(result.data for result in everything))
    blocks = []
    for name in names:
        chosen = [result for result in everything if result.data == name]
        blocks.append(f"## {name}\n\n{table(chosen).markdown()}\n\n{verdict(chosen)}\n")
    path = folder / "results.md"
    path.write_text("\n".join(blocks))
    yield path
    path = folder / "results.png"
    _plot(path, everything, names)
    yield path


def read(path: Path) -> list[Result]:
    """The runs in a file; none if it is not there."""
    return [Result(**row) for row in json.loads(path.read_text())] if path.exists() else []


def _plot(path: Path, results: Sequence[Result], names: Sequence[str]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.5 * len(names), 4.6), dpi=110, layout="constrained")
    methods = list(dict.fromkeys(result.method for result in results))
    marks = dict(zip(methods, _MARKS, strict=False))
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False)[0], names, strict=True):
        cells = _cells([result for result in results if result.data == name])
        for (method, k), runs in cells.items():
            axes.errorbar(
                100 * _mean(runs, "top1"),
                100 * _mean(runs, "top5"),
                xerr=100 * _deviation([run.top1 for run in runs]),
                yerr=100 * _deviation([run.top5 for run in runs]),
                fmt=marks[method],
                color=_COLOURS[k],
                alpha=0.8,
                elinewidth=0.7,
            )
        axes.set(title=name, xlabel="top-1 accuracy, %", ylabel="top-5 accuracy, %")
        axes.spines[["top", "right"]].set_visible(False)
    shown = [({"color": colour, "marker": "o"}, f"k = {k}") for k, colour in _COLOURS.items()]
    shown += [({"color": "#6b7280", "marker": marks[m]}, m) for m in methods]
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], linestyle="", label=label, **look) for look, label in shown]
    figure.legend(handles=handles, loc="outside right upper", frameon=False, fontsize=8)
    figure.savefig(path)


def _cells(results: Sequence[Result]) -> dict[Cell, list[Result]]:
    cells: dict[Cell, list[Result]] = {}
    for result in results:
        cells.setdefault((result.method, result.k), []).append(result)
    return cells


def _mean(runs: Sequence[Result], what: str) -> float:
    return statistics.mean(getattr(run, what) for run in runs)


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def _spread(values: Sequence[float]) -> str:
    return f"{100 * statistics.mean(values):.2f} ± {100 * _deviation(values):.2f}"
