"""The transport suite: sorted SOFT top-k against Sinkhorn's iterations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from benchmarks.cases import Case, Shape
from benchmarks.figures import Figure, ratios
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.memory import Memory
from benchmarks.providers import Provider, paper_sinkhorn, softorder_transport
from benchmarks.report import Report, Subject
from benchmarks.timing import Record

SECTIONS = ("forward", "backward")
SHAPES = (Shape(16, 1_000), Shape(16, 10_000))
EPSILONS = (1e-2, 1e-3)
ERROR = 1e-12  # of our marginals
_BUDGET = 2_000_000  # scores times iterations that are waited for: its time is a lower bound

_LIMITS = {"sinkhorn-200": 0.1, "sinkhorn-converged": 0.01}
_PASSES = {"forward": "Forward", "backward": "Forward + backward"}


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """Ten times as fast as 200 iterations, a hundred times as fast as converged ones."""
    return [
        Figure(f"{title}, × {theirs}", str(record.case.shape), _column(record), ratio, limit)
        for section, title in _PASSES.items()
        for theirs, limit in _LIMITS.items()
        for record, ratio in ratios(
            [r for r in records if r.section == section], "transport", theirs
        )
    ]


SUBJECT = Subject(
    stem="transport",
    times="Sorted SOFT top-k, milliseconds",
    worst="its cases",
    plot="Sorted SOFT top-k",
    derive=derive,
)


def names() -> list[str]:
    """What `only` understands: sections and shapes."""
    return [*SECTIONS, *(shape.key for shape in SHAPES)]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers."""
    jobs = list(_jobs(quick, only, seconds or 1.0))
    return work(Report(SUBJECT), jobs, not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    sections = pick(only, SECTIONS)
    shapes = [s for s in SHAPES if s.key in only] or SHAPES[: 1 if quick else None]
    for section, shape, epsilon in product(sections, shapes, EPSILONS):
        case = Case(shape, k=10, temperature=epsilon)
        yield timing_job(section, case, _providers(case), seconds, section == "backward")


def _providers(case: Case) -> list[Provider]:
    converged = paper_sinkhorn.to_error(ERROR, _BUDGET // case.shape.n)
    return [softorder_transport.provider, paper_sinkhorn.provider, converged]


def _column(record: Record) -> str:
    return f"ε = {record.case.temperature:g}"
