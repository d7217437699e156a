"""What the map found: cells, one table of them with the worst ratio first, and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.cases import Shape
from benchmarks.map import picture
from benchmarks.map.alternatives import YARDSTICKS, Peer
from benchmarks.map.keeping import Kept, kept_table
from benchmarks.map.measure import PASSES, Skipped, Time
from benchmarks.map.patience import BUDGET, LIMIT
from benchmarks.written import Written
from softorder.cli._table import Table

_OURS = "softorder "

NOTE = (
    "Nanoseconds per score, the fastest of many calls; all methods of an operator, its yardstick "
    "and the peers alternate in one run, but for those above 50 ms, which get two calls. "
    "Standard normal scores in float32, k = 5, τ = 0.1; a permutation is whole for n ≤ 100, its "
    "first 5 rows beyond; F-sums are taken at 16 points, quantiles are the quartiles. "
    "torch.sort, topk, median and quantile have no gradient that would be of use: they are timed "
    "forward in both passes. Draws have no gradient; n×n inputs are measured where they are small."
)


@dataclass(frozen=True)
class Cell:
    """One of ours beside its yardstick and, where there is one, its peer."""

    operator: str
    method: str
    section: str
    rows: int
    n: int
    ns: float  # per score
    yardstick: str
    yardstick_ns: float
    peer: str
    peer_ns: float | None

    @property
    def ratio(self) -> float:
        return self.ns / self.yardstick_ns

    def words(self) -> list[str]:
        shape = str(Shape(self.rows, self.n))
        theirs = ["", "", ""]
        if self.peer_ns is not None:
            theirs = [self.peer, number(self.peer_ns), number(self.ns / self.peer_ns)]
        numbers = number(self.ns), self.yardstick, number(self.yardstick_ns), number(self.ratio)
        return [self.operator, self.method, PASSES[self.section], shape, *numbers, *theirs]


HEAD = ["operator", "method", "pass", "rows×n", "ns", "yardstick", "its ns", "ratio"]
PEER_HEAD = ["peer", "its ns", "ratio"]


def table(cells: Sequence[Cell]) -> Table:
    """All of them, the worst first."""
    found = Table([*HEAD, *PEER_HEAD])
    for cell in sorted(cells, key=lambda cell: -cell.ratio):
        found.add(*cell.words())
    return found


@dataclass
class Map(Written):
    """The report of the suite."""

    stem = "map"

    peers: dict[tuple[str, str], Peer]
    machine: dict[str, str] = field(default_factory=machine.facts)
    times: list[Time] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)

    def cells(self) -> list[Cell]:
        return list(self._cells())

    def _cells(self) -> Iterator[Cell]:
        found = {(t.operator, t.section, t.shape, t.provider): t for t in self.times}
        for (operator, section, shape, provider), ours in found.items():
            yardstick = found.get((operator, section, shape, YARDSTICKS[operator].name))
            if not provider.startswith(_OURS) or yardstick is None:
                continue
            method = provider.removeprefix(_OURS)
            peer = self.peers.get((operator, method))
            name = peer.provider.name if peer else ""
            theirs = found.get((operator, section, shape, name))
            yield Cell(
                operator,
                method,
                section,
                shape.rows,
                shape.n,
                _per_score(ours),
                yardstick.provider,
                _per_score(yardstick),
                name if theirs else "",
                _per_score(theirs) if theirs else None,
            )

    def text(self) -> str:
        blocks = [table(self.cells()).text()] if self.times else []
        if self.skipped:
            blocks.append(f"Left out\n\n{self._skipped().text()}")
        if self.kept:
            blocks.append(f"Memory\n\n{kept_table(self.kept).text()}")
        return "\n\n\n".join([*blocks, NOTE, self._verdict()]) + "\n"

    def markdown(self) -> str:
        image = ["![Time over that of the yardstick](map.png)"] if self.cells() else []
        blocks = [f"Measured on: {self.heading()}.", NOTE, *image, self._verdict()]
        blocks += ["### All cells, the worst first", table(self.cells()).markdown()]
        blocks += ["### Left out", self._skipped().markdown()]
        if self.kept:
            blocks += ["### Memory, bytes per score", kept_table(self.kept).markdown()]
        return "\n\n".join(blocks) + "\n"

    def _verdict(self) -> str:
        cells = self.cells()
        slower = sum(cell.ratio > 1 for cell in cells)
        peers = [cell for cell in cells if cell.peer_ns is not None]
        beaten = sum(cell.ns < cell.peer_ns for cell in peers if cell.peer_ns)
        return (
            f"{len(cells)} cells, {len(cells) - slower} of them no slower than their yardstick; "
            f"faster than a peer in {beaten} of {len(peers)}; {len(self.skipped)} left out "
            f"(a first call over {LIMIT:g} s, one that the declared cost puts over "
            f"{2 * LIMIT:g} s, or one after the {BUDGET:g} s of a whole run)."
        )

    def _skipped(self) -> Table:
        found = Table(["operator", "who", "pass", "rows×n", "why"])
        for one in self.skipped:
            found.add(one.operator, one.provider, PASSES[one.section], str(one.shape), one.why)
        return found

    def json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "cells": [asdict(cell) for cell in self.cells()],
            "timings": [
                {"section": t.section, "operator": t.operator, **asdict(t.shape)}
                | {"provider": t.provider, **asdict(t.timing)}
                for t in self.times
            ],
            "skipped": [
                {"section": s.section, "operator": s.operator, **asdict(s.shape)}
                | {"provider": s.provider, "why": s.why}
                for s in self.skipped
            ],
            "memory": [kept.json() for kept in self.kept],
        }

    def draw(self, path: Path) -> bool:
        if self.cells():
            picture.draw(self.json(), path)
        return bool(self.cells())


def _per_score(time: Time) -> float:
    return 1e9 * time.timing.minimum / (time.shape.rows * time.shape.n)


def number(value: float) -> str:
    """Three digits that count."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"
