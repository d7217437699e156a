"""What was measured: as text, as Markdown, as JSON and as a plot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import figures, machine, plots
from benchmarks.cases import Problem
from benchmarks.memory import Memory
from benchmarks.timing import Record
from benchmarks.written import Written
from softorder.cli._table import Table

_NOTE = (
    "Ratios are of the fastest of many calls, the calls of all providers alternating in one run; "
    "each cell is the worst over {worst}; standard normal scores in float32. "
    "✓ within the limit, ✗ above it."
)


@dataclass(frozen=True)
class Subject:
    """What a suite is about."""

    stem: str  # of its files
    times: str  # the title of the table of times
    worst: str  # over what a cell takes the worst
    plot: str  # the title of the plot
    derive: Callable[[list[Record], list[Memory]], list[figures.Figure]]


TOPK = Subject(
    stem="topk",
    times="Forward, milliseconds (k = n/10, τ = 0.1)",
    worst="k and temperature",
    plot="Soft top-k of one row, k = n/10, τ = 0.1, float32, forward",
    derive=figures.derive,
)


@dataclass
class Report(Written):
    subject: Subject = TOPK
    machine: dict[str, str] = field(default_factory=machine.facts)
    records: list[Record] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)

    @property
    def stem(self) -> str:
        return self.subject.stem

    def text(self) -> str:
        blocks = [f"{title}\n\n{table.text()}" for title, table in self._tables().items()]
        return "\n\n\n".join([*blocks, self.verdict()]) + "\n"

    def markdown(self) -> str:
        blocks = [f"### {title}\n\n{table.markdown()}" for title, table in self._tables().items()]
        image = f"![Time against n, for softorder and its peers]({self.subject.stem}.png)"
        heading = f"Measured on: {self.heading()}."
        return "\n\n".join([heading, self._note(), *[image] * bool(self._sweep()), *blocks]) + "\n"

    def verdict(self) -> str:
        found = self.figures()
        found = [figure for figure in found if figure.limit is not None]
        reached = sum(figure.reached for figure in found)
        return f"{self._note()}\n{reached} of {len(found)} figures within their limits."

    def figures(self) -> list[figures.Figure]:
        return self.subject.derive(self.records, self.memories)

    def draw(self, path: Path) -> bool:
        """Time against n, where it was swept."""
        if sweep := self._sweep():
            plots.time_against_n(sweep, path, self.subject.plot)
        return bool(sweep)

    def _sweep(self) -> list[Record]:
        """What the plot shows: everybody on one row."""
        return [r for r in self.records if r.section == "peers" and r.case.shape.rows == 1]

    def _tables(self) -> dict[str, Table]:
        compared = any(record.section == "peers" for record in self.records)
        times = {self.subject.times: self._times()} if compared else {}
        return times | figures.tables(self.figures())

    def _note(self) -> str:
        return _NOTE.format(worst=self.subject.worst)

    def _times(self) -> Table:
        peers = [record for record in self.records if record.section == "peers"]
        names = list(dict.fromkeys(record.provider.name for record in peers))
        cells = {(r.case.shape, r.provider.name): r.timing.minimum for r in peers}
        table = Table(["", *names])
        for shape in dict.fromkeys(record.case.shape for record in peers):
            row = (cells.get((shape, name)) for name in names)
            table.add(str(shape), *("" if t is None else _milliseconds(t) for t in row))
        return table

    def json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "figures": [asdict(f) | {"reached": f.reached} for f in self.figures()],
            "timings": [
                {"section": r.section, **_case(r.case), "provider": r.provider.name}
                | asdict(r.timing)
                for r in self.records
            ],
            "memory": [
                {**_case(m.case), "provider": m.provider.name}
                | {"forward": m.forward, "saved": m.saved}
                for m in self.memories
            ],
        }


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:.4f}" if seconds < 1e-3 else f"{1e3 * seconds:.2f}"


def _case(case: Problem) -> dict[str, object]:
    fields = asdict(case)
    return fields.pop("shape") | fields
