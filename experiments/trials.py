"""Trials of several arms with several seeds: run them, keep the figures, print and draw them.

An experiment is a module with ARMS-by-preset and a function `trial(arm, seed)`; here is what all of
them share: the command line, the progress bar, the JSON file, the table and the plot.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from softorder.cli._progress import Progress
from softorder.cli._table import Table

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Column:
    """A figure of a trial: its key, its heading, and how many digits are worth printing."""

    key: str
    heading: str
    digits: int = 2
    scale: float = 1.0


@dataclass
class Trials:
    """What came out, one entry per arm and seed."""

    title: str
    config: Mapping[str, object]
    columns: Sequence[Column]
    records: list[dict[str, object]] = field(default_factory=list)

    def add(self, arm: str, seed: int, figures: Figures) -> None:
        rounded = {key: _significant(value) for key, value in figures.items()}
        self.records.append({"arm": arm, "seed": seed, **rounded})

    def values(self, arm: str, key: str) -> list[float]:
        return [float(r[key]) for r in self.records if r["arm"] == arm and key in r]  # type: ignore[arg-type]

    @property
    def arms(self) -> list[str]:
        return list(dict.fromkeys(str(r["arm"]) for r in self.records))

    def table(self) -> Table:
        """Means, with standard deviations over the seeds."""
        table = Table(["arm", "seeds", *(c.heading for c in self.columns)])
        for arm in self.arms:
            seeds = {r["seed"] for r in self.records if r["arm"] == arm}
            table.add(arm, str(len(seeds)), *(self._cell(arm, c) for c in self.columns))
        return table

    def _cell(self, arm: str, column: Column) -> str:
        values = [column.scale * v for v in self.values(arm, column.key)]
        if not values:
            return "-"
        mean = f"{statistics.mean(values):.{column.digits}f}"
        if len(values) < 2:
            return mean
        return f"{mean} ± {statistics.stdev(values):.{column.digits}f}"

    def write(self, folder: Path) -> None:
        """results.json, results.md and results.png."""
        folder.mkdir(parents=True, exist_ok=True)
        about = {
            "title": self.title,
            "config": self.config,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "machine": platform.machine(),
            "python": platform.python_version(),
        }
        records = ",\n  ".join(json.dumps(record) for record in self.records)
        text = json.dumps(about, indent=1, default=str)[:-2]
        (folder / "results.json").write_text(f'{text},\n "trials": [\n  {records}\n ]\n}}\n')
        (folder / "results.md").write_text(f"# {self.title}\n\n{self.table().markdown()}\n")
        self.plot(folder / "results.png")

    def plot(self, path: Path) -> None:
        """A panel per figure: a dot per seed, a bar at the mean."""
        from matplotlib.figure import Figure

        columns = [c for c in self.columns if any(self.values(arm, c.key) for arm in self.arms)]
        height = 1.2 + 0.3 * len(self.arms)
        figure = Figure(figsize=(2.4 + 2.8 * len(columns), height), layout="constrained")
        panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
        for axes, column in zip(panels, columns, strict=True):
            for place, arm in enumerate(self.arms):
                values = [column.scale * v for v in self.values(arm, column.key)]
                if values:
                    axes.plot(values, [place] * len(values), "o", color="C1", alpha=0.5, ms=4)
                    axes.plot([statistics.mean(values)], [place], "|", color="black", ms=12)
            axes.set_title(column.heading, fontsize=9)
            axes.set_yticks(range(len(self.arms)), self.arms)
            axes.grid(axis="x", alpha=0.3)
        panels[0].invert_yaxis()
        figure.suptitle(self.title, fontsize=10)
        figure.savefig(path, dpi=120)


def run(
    title: str,
    config: object,
    columns: Sequence[Column],
    arms: Sequence[str],
    trial: Callable[[str, int], Figures],
    seeds: int,
    output: Path,
) -> Trials:
    """Every arm with every seed. Results are written after each trial: nothing is lost."""
    trials = Trials(title, asdict(config), columns)  # type: ignore[call-overload]
    with Progress(len(arms) * seeds) as bar:
        for seed in range(seeds):
            for arm in arms:
                start = time.perf_counter()
                torch.manual_seed(seed)
                figures = trial(arm, seed)
                seconds = time.perf_counter() - start
                trials.add(arm, seed, {**figures, "seconds": seconds})
                trials.write(output)
                bar.step(f"{arm}, seed {seed}")
    print(f"{title}\n\n{trials.table().text()}\n\nwritten to {output}/", file=sys.stdout)
    return trials


def arguments(
    name: str, description: str, presets: Mapping[str, object], data: str | None = None
) -> argparse.Namespace:
    """The command line that the experiments share."""
    parser = argparse.ArgumentParser(prog=f"python -m experiments.{name}", description=description)
    parser.add_argument("--preset", choices=list(presets), default="quick")
    parser.add_argument("--seeds", type=int, help="how many, instead of the preset's number")
    parser.add_argument("--arms", nargs="+", help="only these, by their name in the table")
    parser.add_argument("--output", type=Path, help="folder; reports/NAME-PRESET if not given")
    if data is not None:
        parser.add_argument("--data", type=Path, help=data)
    chosen = parser.parse_args()
    chosen.output = chosen.output or Path("reports", f"{name}-{chosen.preset}")
    return chosen


def chosen_arms(names: Sequence[str], wanted: Sequence[str] | None) -> list[str]:
    """The arms to run; a wrong name lists all."""
    unknown = set(wanted or ()) - set(names)
    if unknown:
        raise SystemExit(f"unknown arms {sorted(unknown)}; known are {list(names)}")
    return [name for name in names if not wanted or name in wanted]


def missing(what: str, folder: Path | None, files: Sequence[str], source: str) -> SystemExit:
    """The error of a loader that did not find its files."""
    where = "no folder was given" if folder is None else f"looked in {folder.resolve()}"
    return SystemExit(f"{what}: {where} for {', '.join(files)}. {source}")


def _significant(value: float) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    return round(value, 5 - math.floor(math.log10(abs(value))))
