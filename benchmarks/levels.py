"""The suite of SIMD levels: what the library of each level reaches, on one CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from benchmarks.cases import ROUTER, Case, OrderingCase, Shape
from benchmarks.figures import Figure, ratios
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.memory import Memory
from benchmarks.providers import Provider, softmax, softorder_native, sort
from benchmarks.providers.at_level import at_level
from benchmarks.providers.softorder_orderings import compiled
from benchmarks.report import Report, Subject
from benchmarks.timing import Record
from softorder.kernels import _native

SECTIONS = ("forward", "backward")
DENSITIES = ("laplace", "logistic", "normal", "uniform")
TOPK_SHAPES = (ROUTER, Shape(128, 1_000), Shape(128, 10_450), Shape(1, 1_000_000))
ORDER_SHAPES = TOPK_SHAPES[1:]
_PASSES = {"forward": "forward", "backward": "forward + backward"}


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """Our time at every level over that of torch at its own best; nothing is promised here."""
    return [
        Figure(_title(section, ours, theirs), _row(record), level, ratio, limit=None)
        for section in SECTIONS
        for ours, theirs in (("native", "softmax"), ("rank", "sort"), ("sort", "sort"))
        for level in _native.LEVELS
        for record, ratio in ratios(
            [r for r in records if r.section == section], f"{ours}-{level}", theirs
        )
    ]


SUBJECT = Subject(
    stem="levels",
    times="",
    worst="one case",
    plot="",
    derive=derive,
)


def names() -> list[str]:
    """What `only` understands: sections, shapes, densities and levels."""
    shapes = [shape.key for shape in TOPK_SHAPES]
    return [*SECTIONS, *shapes, *DENSITIES, *_native.usable_levels()]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers."""
    jobs = list(_jobs(quick, only, seconds or 1.0))
    return work(Report(SUBJECT), jobs, not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    levels = pick(only, _native.usable_levels())
    densities = pick(only, DENSITIES[: 1 if quick else None])
    keys = pick(only, [shape.key for shape in TOPK_SHAPES[: 2 if quick else None]])
    for section, shape in product(pick(only, SECTIONS), TOPK_SHAPES):
        if shape.key not in keys:
            continue
        for density in densities:
            ours = [at_level(level, softorder_native.provider(density)) for level in levels]
            case = Case(shape, shape.n // 10, 0.1)
            yield timing_job(section, case, [softmax, *ours], seconds, section == "backward")
        if shape in ORDER_SHAPES:
            ours = [at_level(level, p) for level in levels for p in _orderings()]
            yield timing_job(
                section, OrderingCase(shape), [sort, *ours], seconds, section == "backward"
            )


def _orderings() -> list[Provider]:
    return [compiled(operator, "laplace") for operator in ("rank", "sort")]


def _title(section: str, ours: str, theirs: str) -> str:
    name = {"native": "soft_topk", "rank": "soft_rank", "sort": "soft_sort"}[ours]
    return f"{name}, {_PASSES[section]}, × torch.{theirs}"


def _row(record: Record) -> str:
    return f"{record.case.shape} {record.provider.density}"
