"""What `softorder bench map` does: times, then memory, then one table, JSON and a heat map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from benchmarks.cases import Shape
from benchmarks.jobs import Job, pick, work
from benchmarks.map import keeping
from benchmarks.map.alternatives import peers
from benchmarks.map.entries import SHAPES, Entry, case_of, entries, inputs_of
from benchmarks.map.measure import PASSES, Skipped, measure
from benchmarks.map.patience import BUDGET, Patience, Taken
from benchmarks.map.results import Map
from benchmarks.rounds import seconds_of
from softorder.kernels import _native

SECTIONS = (*PASSES, "memory")
QUICK = SHAPES[:2]
_SECONDS = 0.04  # for each method, yardstick and peer of a cell
_SHORT = 0.01
_BEFORE = Shape(64, 100)  # what says whether the size of the memory section takes too long


def names() -> list[str]:
    """What `only` understands: sections, shapes, operators and methods."""
    every = entries()
    operators = dict.fromkeys(entry.operator for entry in every)
    methods = dict.fromkeys(entry.method for entry in every)
    return [*SECTIONS, *(shape.key for shape in SHAPES), *operators, *methods]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Map:
    """Measure, showing progress; print the table; write it, the raw numbers and the heat map."""
    if not _native.enabled():
        raise SystemExit("softorder bench: the compiled kernels are missing or switched off")
    share = seconds or (_SHORT if quick else _SECONDS)
    whole = not (quick or only or seconds)
    patience = Patience(budget=BUDGET) if whole else Patience()
    return work(Map(peers()), list(_jobs(quick, only, share, patience)), whole, output)


def _jobs(quick: bool, only: Sequence[str], seconds: float, patience: Patience) -> Iterator[Job]:
    chosen = _chosen(only)
    sections = pick(only, SECTIONS)
    keys = pick(only, [shape.key for shape in (QUICK if quick else SHAPES)])
    shapes = [shape for shape in SHAPES if shape.key in keys]
    for operator, members in groupby(chosen, key=lambda entry: entry.operator):
        methods = list(members)
        for shape in shapes:
            for section in PASSES:
                if section in sections:
                    label = f"{operator} {shape} {PASSES[section]}"
                    yield label, partial(_time, methods, shape, section, patience, seconds)
    if "memory" in sections:
        for entry in chosen:
            yield f"memory {entry.operator} {entry.method}", partial(_keep, entry, patience)


def _chosen(only: Sequence[str]) -> list[Entry]:
    """Operators together, in the order of their first."""
    every = entries()
    operators = pick(only, list(dict.fromkeys(entry.operator for entry in every)))
    methods = pick(only, list(dict.fromkeys(entry.method for entry in every)))
    found = [e for e in every if e.operator in operators and e.method in methods]
    return sorted(found, key=lambda entry: operators.index(entry.operator))


def _time(
    methods: Sequence[Entry],
    shape: Shape,
    section: str,
    patience: Patience,
    seconds: float,
    report: Map,
) -> None:
    operator = methods[0].operator
    for found in measure(operator, shape, section, methods, report.peers, patience, seconds):
        if isinstance(found, Skipped):
            report.skipped.append(found)
        else:
            report.times.append(found)


def _keep(entry: Entry, patience: Patience, report: Map) -> None:
    """At a size that the patience for times allows; for others nothing is said of the memory."""
    who, shape = f"{entry.operator} {entry.provider.name}", keeping.SHAPE
    if entry.square:
        return
    if who not in patience.taken:
        case = case_of(_BEFORE)
        seconds = seconds_of(partial(entry.bind(case), inputs_of(entry, case)))
        outputs = entry.rows_of_output(_BEFORE)
        patience.note(who, Taken("forward", _BEFORE, outputs, seconds, seconds))
    outputs = entry.rows_of_output(shape)
    objection = patience.objection(who, "forward", entry.cost, shape, outputs)
    if objection is None:
        report.kept.append(keeping.measure(entry))
