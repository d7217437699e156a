"""A run of timings: measure, show progress, print the tables, write them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks import machine, timing
from benchmarks.cases import Problem
from benchmarks.providers import Provider
from benchmarks.report import Report, Subject
from softorder.cli._progress import Progress


@dataclass(frozen=True)
class TimingJob:
    """Providers that are timed together on one case."""

    section: str
    case: Problem
    providers: Sequence[Provider]
    backward: bool


def run_timings(
    subject: Subject, jobs: Sequence[TimingJob], seconds: float, folder: Path
) -> Report:
    """All of them, each for so many seconds; the report is written to the folder."""
    report = Report(subject)
    print(report.heading(), machine.busy(), sep="\n", end="\n\n", flush=True)
    with Progress(len(jobs)) as progress:
        for job in jobs:
            report.records += timing.measure(
                job.section, job.case, job.providers, seconds, job.backward
            )
            progress.step(f"{job.section} {job.case}")
    print(report.text())
    for path in report.write(folder):
        print(f"wrote {path}")
    return report
