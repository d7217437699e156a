"""What the measurements must reach: each figure beside its limit, the worst case of each cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benchmarks.cases import ROUTER, Shape
from benchmarks.memory import Memory
from benchmarks.timing import Record
from softorder.cli._table import Table

_MIB = 2**20
_SLACK = 4 * _MIB  # thread stacks, rounding to pages


@dataclass(frozen=True)
class Figure:
    """One number in one cell of one table."""

    table: str
    row: str
    column: str
    value: float
    limit: float | None  # None: shown, but nothing is promised

    @property
    def reached(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def __str__(self) -> str:
        value = f"{self.value:.2f}" if self.value >= 0.1 else f"{self.value:.2g}"
        if self.limit is None:
            return value
        sign, mark = ("≤", "✓") if self.reached else (">", "✗")
        return f"{value} {sign} {self.limit:.4g} {mark}"


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """All the figures that these measurements give."""
    return [
        *_worst(_against_softmax(records, "forward", "Forward, × torch.softmax")),
        *_worst(_against_softmax(records, "backward", "Forward + backward, × torch.softmax")),
        *_worst(_against_topk(records)),
        *_worst(_plain_against_closed_form(records)),
        *_small_calls(records),
        *_peaks(memories),
        *_saved(memories),
    ]


def tables(figures: Iterable[Figure]) -> dict[str, Table]:
    """The figures as tables, by title."""
    members: dict[str, list[Figure]] = {}
    for figure in figures:
        members.setdefault(figure.table, []).append(figure)
    return {title: _table(chosen) for title, chosen in members.items()}


def _table(figures: list[Figure]) -> Table:
    columns = list(dict.fromkeys(figure.column for figure in figures))
    cells = {(figure.row, figure.column): str(figure) for figure in figures}
    table = Table(["", *columns])
    for row in dict.fromkeys(figure.row for figure in figures):
        table.add(row, *(cells.get((row, column), "") for column in columns))
    return table


def _worst(figures: Iterable[Figure]) -> list[Figure]:
    worst: dict[tuple[str, str], Figure] = {}
    for figure in figures:
        cell = (figure.row, figure.column)
        if cell not in worst or figure.value > worst[cell].value:
            worst[cell] = figure
    return list(worst.values())


def ratios(records: Iterable[Record], ours: str, theirs: str) -> Iterator[tuple[Record, float]]:
    """Our time over theirs, on every case where both were measured together."""
    records = list(records)
    reference = {
        (record.section, record.case): record.timing.minimum
        for record in records
        if record.provider.key == theirs
    }
    for record in records:
        seconds = reference.get((record.section, record.case))
        if record.provider.key == ours and seconds:
            yield record, record.timing.minimum / seconds


def _softmax_limit(shape: Shape, density: str) -> float:
    limit = {ROUTER: 4.0, Shape(128, 1_000): 3.0}.get(shape, 2.0)
    return 2 * limit if density in ("normal", "cauchy") else limit


def _against_softmax(records: list[Record], section: str, title: str) -> Iterator[Figure]:
    chosen = [record for record in records if record.section == section]
    for record, ratio in ratios(chosen, "native", "softmax"):
        shape, density = record.case.shape, record.provider.density
        yield Figure(title, str(shape), density, ratio, _softmax_limit(shape, density))


def _against_topk(records: list[Record]) -> Iterator[Figure]:
    title = "Forward, × hard torch.topk"
    chosen = [record for record in records if record.section == "forward"]
    for record, ratio in ratios(chosen, "native", "topk"):
        row = f"{record.case.shape}, k = {record.case.k:,}"
        yield Figure(title, row, record.provider.density, ratio, limit=1.0)


def _plain_against_closed_form(records: list[Record]) -> Iterator[Figure]:
    title = "Plain torch, forward, × the sorting closed form"
    chosen = [record for record in records if record.case.shape.n >= 1000]
    for record, ratio in ratios(chosen, "torch", "closed-form"):
        yield Figure(title, str(record.case.shape), record.provider.density, ratio, limit=1.0)


def _small_calls(records: list[Record]) -> Iterator[Figure]:
    limits = {"call": ("forward", 25.0), "call-backward": ("forward + backward", 80.0)}
    for record in records:
        if record.section in limits:
            row, limit = limits[record.section]
            microseconds = 1e6 * record.timing.minimum
            yield Figure("A call on 1×16, µs", row, record.provider.density, microseconds, limit)


def _peaks(memories: list[Memory]) -> Iterator[Figure]:
    """The output and one more buffer of a row."""
    title = "Peak memory of a forward call, MiB"
    for memory in memories:
        shape = memory.case.shape
        limit = (4 * shape.rows * shape.n + 4 * shape.n + _SLACK) / _MIB
        if memory.forward is not None:
            value = memory.forward / _MIB
            yield Figure(title, str(shape), memory.provider.density, value, limit)


def _saved(memories: list[Memory]) -> Iterator[Figure]:
    """One tensor of the size of the scores, and a few numbers per row."""
    title = "Kept for the backward call, MiB"
    for memory in memories:
        shape = memory.case.shape
        limit = (4 * shape.rows * shape.n + 64 * shape.rows) / _MIB
        yield Figure(title, str(shape), memory.provider.density, memory.saved / _MIB, limit)
