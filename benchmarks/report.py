"""What was measured: as text, as Markdown, as JSON and as a plot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks import figures, machine, plots
from benchmarks.cases import Case
from benchmarks.memory import Memory
from benchmarks.timing import Record
from softorder.cli._table import Table

_TIMES = "Forward, milliseconds (k = n/10, τ = 0.1)"
_NOTE = (
    "Ratios are of the fastest of many calls, the calls of all providers alternating in one run; "
    "each cell is the worst over k and temperature; standard normal scores in float32. "
    "✓ within the limit, ✗ above it."
)


@dataclass
class Report:
    machine: dict[str, str] = field(default_factory=machine.facts)
    records: list[Record] = field(default_factory=list)
    memories: list[Memory] = field(default_factory=list)

    def heading(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in self.machine.items())

    def text(self) -> str:
        blocks = [f"{title}\n\n{table.text()}" for title, table in self._tables().items()]
        return "\n\n\n".join([*blocks, self.verdict()]) + "\n"

    def markdown(self) -> str:
        blocks = [f"### {title}\n\n{table.markdown()}" for title, table in self._tables().items()]
        plot = "![Time against n, for softorder and its peers](topk.png)"
        return "\n\n".join([f"Measured on: {self.heading()}.", _NOTE, plot, *blocks]) + "\n"

    def verdict(self) -> str:
        found = figures.derive(self.records, self.memories)
        reached = sum(figure.reached for figure in found)
        return f"{_NOTE}\n{reached} of {len(found)} figures within their limits."

    def write(self, folder: Path, stem: str) -> Iterator[Path]:
        """Write the files of a suite, and name them."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{stem}.json"
        path.write_text(json.dumps(self._json(), indent=1, ensure_ascii=False) + "\n")
        yield path
        path = path.with_suffix(".md")
        path.write_text(self.markdown())
        yield path
        sweep = [r for r in self.records if r.section == "peers" and r.case.shape.rows == 1]
        if sweep:
            path = path.with_suffix(".png")
            plots.time_against_n(sweep, path)
            yield path

    def _tables(self) -> dict[str, Table]:
        times = {_TIMES: self._times()} if any(r.section == "peers" for r in self.records) else {}
        return times | figures.tables(figures.derive(self.records, self.memories))

    def _times(self) -> Table:
        peers = [record for record in self.records if record.section == "peers"]
        names = list(dict.fromkeys(record.provider.name for record in peers))
        cells = {(r.case.shape, r.provider.name): r.timing.minimum for r in peers}
        table = Table(["", *names])
        for shape in dict.fromkeys(record.case.shape for record in peers):
            table.add(str(shape), *(_milliseconds(cells[shape, name]) for name in names))
        return table

    def _json(self) -> dict[str, object]:
        return {
            "machine": self.machine,
            "figures": [
                asdict(f) | {"reached": f.reached}
                for f in figures.derive(self.records, self.memories)
            ],
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


def _case(case: Case) -> dict[str, object]:
    return asdict(case.shape) | {"k": case.k, "temperature": case.temperature}
