"""The suite of instruction counts: what the kernels of the soft top-k do, by valgrind.

No other process can disturb a count, so that a change of one part in a hundred shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import torch

import softorder as so
from benchmarks import figures, machine
from benchmarks.cases import Case, Shape
from benchmarks.figures import Figure
from benchmarks.jobs import Job, pick, work
from benchmarks.providers import DENSITIES
from benchmarks.valgrind import counting
from benchmarks.valgrind.recording import Recorded, record
from benchmarks.written import Written

SHAPES = (Shape(256, 64), Shape(16, 1_000), Shape(4, 10_450), Shape(1, 100_000))
KERNELS = ("topk_forward", "topk_backward")
NOTE = (
    "Instructions per score of one call on one thread, counted by callgrind within the kernel; at "
    "the levels that valgrind can run. Standard normal scores in float32."
)


def missing() -> str | None:
    """What this suite needs and has not."""
    return counting.missing()


@dataclass
class Instructions(Written):
    """The report of the suite."""

    stem = "instructions"
    machine: dict[str, str] = field(default_factory=machine.facts)
    counts: list[dict[str, Any]] = field(default_factory=list)

    def figures(self) -> list[Figure]:
        return [
            Figure(
                f"{count['kernel']}, {count['section']}",
                f"{Shape(count['rows'], count['n'])} {count['density']}",
                f"k = {count['choice']}, τ = {count['temperature']:g}",
                count["per_score"],
                limit=None,
            )
            for count in self.counts
        ]

    def text(self) -> str:
        tables = figures.tables(self.figures())
        blocks = [f"{title}\n\n{table.text()}" for title, table in tables.items()]
        return "\n\n\n".join([*blocks, NOTE]) + "\n"

    def markdown(self) -> str:
        tables = figures.tables(self.figures())
        blocks = [f"### {title}\n\n{table.markdown()}" for title, table in tables.items()]
        return "\n\n".join([f"Counted on: {self.heading()}.", NOTE, *blocks]) + "\n"

    def json(self) -> dict[str, Any]:
        return {"machine": self.machine, "instructions": self.counts}


def names() -> list[str]:
    """What `only` understands: levels, kernels, shapes and densities."""
    return [*counting.LEVELS, *KERNELS, *(shape.key for shape in SHAPES), *DENSITIES]


def run(
    quick: bool, only: Sequence[str], seconds: float | None, output: Path | None
) -> Instructions:
    """Count, showing progress; print the tables; write them beside the raw numbers."""
    if seconds is not None:
        print("softorder bench instructions: --seconds changes nothing, instructions are counted")
    return work(Instructions(), list(_jobs(quick, only)), not (quick or only), output)


def _jobs(quick: bool, only: Sequence[str]) -> Iterator[Job]:
    densities = pick(only, DENSITIES)
    keys = pick(only, [shape.key for shape in SHAPES[: 2 if quick else None]])
    kernels = pick(only, KERNELS)
    for level, shape in product(pick(only, counting.levels()), SHAPES):
        if shape.key in keys:
            chosen = [c for d in densities for c in _cases(d, shape)]
            yield f"{level} {shape}", partial(_count, level, chosen, kernels)


@dataclass(frozen=True)
class _Counted:
    density: str
    case: Case
    choice: str  # of k, for the table


def _cases(density: str, shape: Shape) -> Iterator[_Counted]:
    """A few k and temperatures: usual ones, a tail, a hot row, a cold one."""
    n = shape.n
    for choice, k, tau in (
        ("8", 8, 0.1),
        ("n/10", n // 10, 1.0),
        ("n/10", n // 10, 0.1),
        ("n/2", n // 2, 0.01),
    ):
        yield _Counted(density, Case(shape, k, tau), choice)


def _count(
    level: str, chosen: Sequence[_Counted], kernels: Sequence[str], report: Instructions
) -> None:
    calls = [(one, call) for one in chosen for call in _calls(one) if call.kernel in kernels]
    counts = counting.count([call for _, call in calls], level)
    for (one, call), found in zip(calls, counts, strict=True):
        scores = one.case.shape.rows * one.case.shape.n
        fields = asdict(one.case)
        about = {"section": level, "kernel": call.kernel, "density": one.density}
        about |= fields.pop("shape") | fields | {"choice": one.choice}
        report.counts.append(about | {"per_score": found["Ir"] / scores})


def _calls(one: _Counted) -> list[Recorded]:
    """The forward kernel and the backward kernel of one soft top-k."""
    case, scores = one.case, one.case.scores().requires_grad_()
    upstream = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1))

    def both() -> None:
        p = so.soft_topk(scores, case.k, method=one.density, temperature=case.temperature)
        p.backward(upstream)

    return record(both)
