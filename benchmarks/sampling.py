"""The sampling suite: k-hot draws and their log-probabilities."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from benchmarks import timing
from benchmarks.cases import Case, Shape
from benchmarks.figures import Figure, ratios
from benchmarks.jobs import Job, mixed_job, pick, work
from benchmarks.memory import Memory
from benchmarks.providers import khot_recursion, softmax, softorder_khot, topk
from benchmarks.report import Report, Subject
from benchmarks.timing import Record

SECTIONS = ("draw", "score", "growth", "recursion")
DESIGNS = ("pareto", "systematic", "pivotal", "conditional_poisson", "sampford")
DRAW, SCORE = Shape(256, 1_000), Shape(64, 1_000)
SWEEP = (10, 30, 100, 300, 1_000, 3_000, 10_000)
DOUBLINGS = (1_000, 2_000, 4_000, 8_000)
_PLOTTED = ("pareto", "conditional_poisson")
_RECURSION = 300  # units, beyond which it takes minutes

_DRAW = "A draw and its straight-through gradient, × hard torch.topk"
_SCORE = "Conditional Poisson log_prob, forward + backward, × torch.softmax"
_GROWTH = "Conditional Poisson log_prob, forward + backward, time at 2n over time at n"


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """Three times a top-k for Pareto, a hundred softmaxes for log_prob, growth like n log² n."""
    return [*_draws(records), *_scores(records), *_doublings(records)]


def _draws(records: list[Record]) -> Iterator[Figure]:
    for design in DESIGNS:
        limit = 3.0 if design == "pareto" else None
        for record, ratio in ratios(_in(records, "draw"), f"draw-{design}", "topk"):
            yield Figure(_DRAW, str(record.case.shape), design, ratio, limit)


def _scores(records: list[Record]) -> Iterator[Figure]:
    for record, ratio in ratios(_in(records, "score"), "log_prob", "softmax"):
        yield Figure(_SCORE, str(record.case.shape), "conditional_poisson", ratio, 100.0)


def _doublings(records: list[Record]) -> Iterator[Figure]:
    times = {
        (r.section, r.case.shape.n): r.timing.minimum
        for r in records
        if r.section.startswith("growth")
    }
    for (section, n), seconds in times.items():
        twice = times.get((section, 2 * n))
        if twice:
            # n log² n at most: (log 2n / log n)² is below 1.22 from n = 1,000 up
            yield Figure(_GROWTH, f"n = {n:,}", "conditional_poisson", twice / seconds, 2.45)


def _in(records: list[Record], section: str) -> list[Record]:
    return [record for record in records if record.section == section]


SUBJECT = Subject(
    stem="sampling",
    times="A draw and its gradient, one row, k = n/2, milliseconds",
    worst="its cases",
    plot="A k-hot draw and its gradient, one row, k = n/2, float32",
    derive=derive,
)


def names() -> list[str]:
    """What `only` understands: sections."""
    return list(SECTIONS)


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers and a plot."""
    jobs = list(_jobs(quick, only, seconds or (0.2 if quick else 2.0)))
    return work(Report(SUBJECT), jobs, not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    chosen = pick(only, SECTIONS)
    draws = [softorder_khot.straight_through(design) for design in DESIGNS]
    if "draw" in chosen:
        yield mixed_job("draw", _case(DRAW), [topk], draws, seconds)
    if "score" in chosen:
        yield mixed_job("score", _case(SCORE), [], [softmax, softorder_khot.log_prob], seconds)
    if "growth" in chosen:
        for n in DOUBLINGS[: 1 if quick else None]:
            cases = [_case(Shape(16, size)) for size in (n, 2 * n)]
            yield f"growth {n}", partial(_double, f"growth {n}", cases, seconds)
    if "recursion" in chosen:
        for n in SWEEP[: 3 if quick else None]:
            theirs = [khot_recursion.provider] if n <= _RECURSION else []
            ours = [draw for draw in draws if draw.density in _PLOTTED]
            yield mixed_job("peers", _case(Shape(1, n)), [topk], [*ours, *theirs], seconds)


def _case(shape: Shape) -> Case:
    return Case(shape, k=shape.n // 2, temperature=1.0)


def _double(section: str, cases: Sequence[Case], seconds: float, report: Report) -> None:
    ours = [softorder_khot.log_prob]
    report.records += timing.measure_doubling(section, cases, ours, seconds, backward=True)
