"""The suite of torch.compile: a compiled graph must not be slower than eager mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from benchmarks.cases import OrderingCase, Shape
from benchmarks.figures import Figure, ratios
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.memory import Memory
from benchmarks.providers.compiled import CALLS, compiled, eager, in_model
from benchmarks.report import Report, Subject
from benchmarks.timing import Record

SECTIONS = ("forward", "backward", "model")
SHAPES = (Shape(128, 1_000), Shape(16, 10_000))
MODEL = Shape(128, 1_000)
_LIMIT = 1.1
_TITLES = {
    "forward": "Compiled, forward, × eager",
    "backward": "Compiled, forward + backward, × eager",
    "model": "Between two linear layers, compiled, forward + backward, × eager",
}


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """One tenth more is what a noisy machine may add."""
    return [
        Figure(title, name, str(record.case.shape), ratio, _LIMIT)
        for section, title in _TITLES.items()
        for name in CALLS
        for record, ratio in ratios(
            [r for r in records if r.section == section], f"{name}-compiled", f"{name}-eager"
        )
    ]


SUBJECT = Subject(stem="compile", times="", worst="one case", plot="", derive=derive)


def names() -> list[str]:
    """What `only` understands: sections, shapes and operators."""
    return [*SECTIONS, *(shape.key for shape in SHAPES), *CALLS]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers."""
    jobs = list(_jobs(quick, only, seconds or (0.2 if quick else 1.0)))
    return work(Report(SUBJECT), jobs, not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    keys = pick(only, [shape.key for shape in SHAPES[: 1 if quick else None]])
    for section, shape, name in product(pick(only, SECTIONS), SHAPES, pick(only, list(CALLS))):
        if shape.key not in keys or (section == "model" and shape != MODEL):
            continue
        plain = eager(name) if section != "model" else in_model(eager(name))
        if section == "model" and name == "top-k loss":
            continue  # a number: nothing comes behind it
        both = [plain, compiled(plain)]
        yield timing_job(section, OrderingCase(shape), both, seconds, section != "forward")
