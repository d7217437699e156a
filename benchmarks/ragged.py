"""The ragged suite: rows of different lengths against padding, and against a dense matrix."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.cases import RaggedCase, Shape
from benchmarks.figures import Figure
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.memory import Memory, growth, saved
from benchmarks.providers.softorder_ragged import DENSE_ROW, dense, padded, ragged
from benchmarks.report import Report, Subject
from benchmarks.timing import Record

SECTIONS = ("forward", "backward", "memory")
_DENSITIES = ("laplace", "logistic", "normal", "cauchy", "uniform")
#: By the methods that are measured; a loss of the scores themselves has none.
OPERATORS = {
    "soft_topk": _DENSITIES,
    "soft_rank": _DENSITIES,
    "soft_sort": _DENSITIES,
    "permutation_cross_entropy": _DENSITIES,
    "NDCGLoss": ("laplace", "logistic"),
    "NeuralNDCGLoss": ("laplace",),
    "ListMLELoss": ("",),
}
_SHAPE, _QUICK = Shape(2_000, 10_000), Shape(500, 5_000)
_TITLES = {"forward": "Forward", "backward": "Forward + backward"}
_MIB = 2**20


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """Times of all three, ratios to the dense matrix, and memory."""
    found = []
    for section, title in _TITLES.items():
        chosen = [record for record in records if record.section == section]
        base = {str(r.case): r.timing.minimum for r in chosen if r.provider is dense}
        for record in chosen:
            row, column = str(record.case), record.provider.name
            time = record.timing.minimum
            found.append(Figure(f"{title}, milliseconds", row, column, 1e3 * time, None))
            if record.provider is not dense:
                table = f"{title}, × dense rows of {DENSE_ROW}, as many scores"
                found.append(Figure(table, row, column, time / base[row], None))
    for memory in memories:
        row, column = str(memory.case), memory.provider.name
        if memory.forward is not None:
            table = "Peak of the forward pass, MiB"
            found.append(Figure(table, row, column, memory.forward / _MIB, None))
        table = "Kept for backward, MiB"
        found.append(Figure(table, row, column, memory.saved / _MIB, None))
    return found


SUBJECT = Subject(
    stem="ragged",
    times="Rows of different lengths, milliseconds",
    worst="one case",
    plot="Rows of different lengths",
    derive=derive,
)


def names() -> list[str]:
    """What `only` understands: sections, operators, methods."""
    methods = dict.fromkeys(name for each in OPERATORS.values() for name in each if name)
    return [*SECTIONS, *OPERATORS, *methods]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers."""
    jobs = list(_jobs(quick, only, seconds or (0.4 if quick else 4.0)))
    return work(Report(SUBJECT), jobs, not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    providers = ragged, padded, dense
    shape = _QUICK if quick else _SHAPE
    methods = [name for name in only if name in names() and name not in (*SECTIONS, *OPERATORS)]
    for operator in pick(only, tuple(OPERATORS)):
        for method in OPERATORS[operator]:
            if methods and method not in methods:
                continue
            case = RaggedCase(shape, operator, method)
            for section in pick(only, SECTIONS):
                if section == "memory":
                    yield _memory_job(case)
                else:
                    yield timing_job(section, case, providers, seconds, section == "backward")


def _memory_job(case: RaggedCase) -> Job:
    def measure(report: Report) -> None:
        scores = case.scores()
        for provider in (ragged, padded, dense):
            operator = provider.bind(case)
            operator(scores)  # lazy initialisation happens here
            peak = growth(lambda call=operator: call(scores)) if sys.platform == "linux" else None
            report.memories.append(Memory(case, provider, peak, saved(operator, scores)))

    return f"memory {case}", measure
