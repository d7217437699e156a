"""How a suite runs: its jobs with progress, then the tables, then the files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from benchmarks import machine, timing
from benchmarks.cases import Problem
from benchmarks.providers import Provider
from benchmarks.report import Report
from benchmarks.written import Written
from softorder.cli._progress import Progress

FOLDER = Path("benchmarks", "results")  # where a full run belongs
SCRATCH = Path("reports")  # where every other run goes

Job = tuple[str, Callable[[Any], None]]  # what it does to its report
AnyReport = TypeVar("AnyReport", bound=Written)


def work(report: AnyReport, jobs: Sequence[Job], complete: bool, output: Path | None) -> AnyReport:
    """Measure, showing progress; print the tables; write them beside the raw numbers and a plot."""
    print(report.heading(), machine.busy(), sep="\n", end="\n\n", flush=True)
    with Progress(len(jobs)) as progress:
        for label, job in jobs:
            job(report)
            progress.step(label)
    print(report.text())
    for path in report.write(folder_of(complete, output)):
        print(f"wrote {path}")
    return report


def folder_of(complete: bool, output: Path | None) -> Path:
    """Where a run is written: one that is not complete cannot pass for a complete one."""
    return output or (FOLDER if complete else SCRATCH)


def pick(only: Sequence[str], kind: Sequence[str]) -> list[str]:
    """Those of a kind that were named; all of them when none was."""
    return [name for name in kind if name in only] or list(kind)


def timing_job(
    section: str,
    case: Problem,
    providers: Sequence[Provider],
    seconds: float,
    backward: bool = False,
) -> Job:
    """Providers that are timed together on one case."""
    forward, both = ((), providers) if backward else (providers, ())
    return mixed_job(section, case, forward, both, seconds)


def mixed_job(
    section: str,
    case: Problem,
    forward: Sequence[Provider],
    backward: Sequence[Provider],
    seconds: float,
) -> Job:
    """Some timed without their gradient, others with it."""

    def time(report: Report) -> None:
        report.records += timing.measure_mixed(section, case, forward, backward, seconds)

    return f"{section} {case}", time
