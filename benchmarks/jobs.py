"""How a suite runs: its jobs with progress, then the tables, then the files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import machine, timing
from benchmarks.cases import Problem
from benchmarks.providers import Provider
from benchmarks.report import Report
from softorder.cli._progress import Progress

FOLDER = Path("benchmarks", "results")  # where a full run belongs
SCRATCH = Path("reports")  # where every other run goes

Job = tuple[str, Callable[[Report], None]]


def work(report: Report, jobs: Sequence[Job], complete: bool, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers and a plot."""
    print(report.heading(), machine.busy(), sep="\n", end="\n\n", flush=True)
    with Progress(len(jobs)) as progress:
        for label, job in jobs:
            job(report)
            progress.step(label)
    print(report.text())
    for path in report.write(output or (FOLDER if complete else SCRATCH)):
        print(f"wrote {path}")
    return report


def timing_job(
    section: str, case: Problem, providers: Sequence[Provider], seconds: float, backward: bool
) -> Job:
    """Providers that are timed together on one case."""

    def time(report: Report) -> None:
        report.records += timing.measure(section, case, providers, seconds, backward)

    return f"{section} {case}", time
