"""What `softorder bench goals` does: every goal at every level that counts, in one table each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import figures, machine, torch_level
from benchmarks.figures import Figure
from benchmarks.goals import orders, others, picture, topk
from benchmarks.goals.goal import Goal, Side
from benchmarks.jobs import Job, pick, work
from benchmarks.rounds import Rounds, few_calls, in_rounds, seconds_of
from benchmarks.written import Written
from softorder.cli._table import Table
from softorder.kernels import _native

SECTIONS = (
    "topk",
    "topk-backward",
    "formats",
    "dim",
    "rows",
    "orders",
    "permutation",
    "losses",
    "sampling",
    "neighbours",
)
_USUAL = "avx2"  # what most CPUs have
_SECONDS, _SHORT = 1.0, 0.1  # for all that are measured together
_SLOW, _PATIENCE = 0.1, 1.0  # first calls: three more from here on; no other

NOTE = (
    "Ratios are of the fastest of many calls, alternating in one run; a call of more than 1 s is "
    "made once. Standard normal scores in float32; torch's kernels are of the same level as ours. "
    "✓ within the goal, ✗ above it."
)


@dataclass
class Goals(Written):
    """The report of the suite."""

    stem = "goals"

    machine: dict[str, str] = field(default_factory=machine.facts)
    timings: list[dict[str, Any]] = field(default_factory=list)
    cases: list[Figure] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        """The worst case of every row, at each level."""
        worst: dict[tuple[str, str, str], Figure] = {}
        for figure in self.cases:
            cell = (figure.table, figure.row, figure.column)
            if cell not in worst or figure.value > worst[cell].value:
                worst[cell] = figure
        return list(worst.values())

    def text(self) -> str:
        blocks = [f"{title}\n\n{table.text()}" for title, table in self._tables().items()]
        return "\n\n\n".join([*blocks, NOTE, self.verdict()]) + "\n"

    def markdown(self) -> str:
        blocks = [f"### {title}\n\n{table.markdown()}" for title, table in self._tables().items()]
        heading = f"Measured on: {self.heading()}."
        return "\n\n".join([heading, NOTE, self.verdict(), *blocks]) + "\n"

    def verdict(self) -> str:
        found = [figure for figure in self.figures() if figure.limit is not None]
        parts = []
        for level in dict.fromkeys(figure.column for figure in found):
            here = [figure for figure in found if figure.column == level]
            reached = sum(figure.reached for figure in here)
            parts.append(f"{reached} of {len(here)} goals reached with {level}")
        return "; ".join(parts) + "."

    def draw(self, path: Path) -> bool:
        return picture.draw(self.json()["figures"], path)

    def _tables(self) -> dict[str, Table]:
        return figures.tables(self.figures())

    def json(self) -> dict[str, Any]:
        kept = [asdict(figure) | {"reached": figure.reached} for figure in self.figures()]
        return {"machine": self.machine, "figures": kept, "timings": self.timings}


def levels() -> list[str]:
    """That of most CPUs and that of this one."""
    usable = _native.usable_levels()
    return [level for level in usable if level in (_USUAL, usable[-1])]


def names() -> list[str]:
    """What `only` understands: sections, shapes of the soft top-k, levels."""
    return [*SECTIONS, *(shape.key for shape in topk.SHAPES), *_native.usable_levels()]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Goals:
    """Measure, showing progress; print the tables; write them beside the raw numbers."""
    if not _native.enabled():
        raise SystemExit("softorder bench: the compiled kernels are missing or switched off")
    share = seconds or (_SHORT if quick else _SECONDS)
    return work(Goals(), list(_jobs(quick, only, share)), not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    named = [name for name in _native.usable_levels() if name in only]
    keys = pick(only, [shape.key for shape in topk.SHAPES[: 2 if quick else None]])
    sections = pick(only, SECTIONS)
    for level in named or levels():
        if torch_level.here(level):
            yield from _jobs_here(level, keys, sections, seconds)
        else:
            wanted = [*keys, *sections]
            yield f"{level}, in a process of its own", partial(_apart, level, wanted, seconds)


def _apart(level: str, only: Sequence[str], seconds: float, report: Goals) -> None:
    found = torch_level.measured_apart(Goals.stem, level, only, seconds)
    report.timings += found["timings"]
    names = [one.name for one in fields(Figure)]
    report.cases += [Figure(*(kept[name] for name in names)) for kept in found["figures"]]


def _jobs_here(
    level: str, keys: Sequence[str], sections: Sequence[str], seconds: float
) -> Iterator[Job]:
    shapes = tuple(shape for shape in topk.SHAPES if shape.key in keys)
    groups: dict[tuple[str, str], list[Goal]] = {}
    for goal in chain(topk.goals(shapes), orders.goals(), others.goals()):
        if goal.section in sections:
            groups.setdefault((goal.table, goal.case), []).append(goal)
    for (_, case), members in groups.items():
        yield f"{level} {members[0].section} {case}", partial(_time, level, members, seconds)


def _time(level: str, goals: Sequence[Goal], seconds: float, report: Goals) -> None:
    sides = {side.name: side for goal in goals for side in (goal.theirs, goal.ours)}
    with _native.use_level(level):
        timings = measured(sides, seconds)
    for name, timing in timings.items():
        about = {"section": goals[0].table, "level": level, "case": goals[0].case}
        report.timings.append(about | {"provider": name} | asdict(timing))
    for goal in goals:
        ratio = timings[goal.ours.name].minimum / timings[goal.theirs.name].minimum
        report.cases.append(Figure(goal.table, goal.row, level, ratio, goal.limit))


def measured(sides: dict[str, Side], seconds: float) -> dict[str, Rounds]:
    """In alternation; what takes long is called a few times, or once."""
    slow, quick = {}, {}
    for name, side in sides.items():
        call = side.call()
        took = seconds_of(call)
        if took > _PATIENCE:
            slow[name] = Rounds(took, took, 1, (took,))
        elif took > _SLOW:
            slow[name] = few_calls(call, 3)
        else:
            quick[name] = call
    return slow | in_rounds(quick, seconds)
