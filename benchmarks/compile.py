"""The suite of torch.compile: a compiled graph must not be slower than eager mode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from benchmarks.cases import OrderingCase, Shape
from benchmarks.figures import Figure
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.memory import Memory
from benchmarks.providers.compiled import CALLS, compiled, eager, in_model, relu_beside
from benchmarks.report import Report, Subject
from benchmarks.timing import Record

SECTIONS = ("forward", "backward", "model")
SHAPES = (Shape(128, 1_000), Shape(16, 10_000))
MODEL = Shape(128, 1_000)
_LIMIT = 1.1
_TITLES = {
    "forward": "Compiled, forward",
    "backward": "Compiled, forward + backward",
    "model": "Between two linear layers, compiled, forward + backward",
}


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """Compiled over eager; and the same of a relu, where all of it is torch's.

    One tenth more is what a noisy machine may add.
    """
    seconds = {(r.section, r.case, r.provider.key): r.timing.minimum for r in records}
    figures, torch_alone = [], {}
    for (section, case, key), plain in seconds.items():
        name, _, kind = key.rpartition("-")
        if kind != "eager":
            continue
        ratio = seconds[section, case, f"{name}-compiled"] / plain
        title, column = f"{_TITLES[section]}, × eager", str(case.shape)
        if name in CALLS:
            figures.append(Figure(title, name, column, ratio, _LIMIT))
        else:
            found = torch_alone.get((title, column), ratio)
            torch_alone[title, column] = min(found, ratio)
    for (title, column), ratio in torch_alone.items():
        figures.append(Figure(title, "relu, nothing of ours", column, ratio, None))
    return sorted(figures, key=lambda figure: figure.table)


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
        if section == "model" and name == "top-k loss":
            continue  # a number: nothing comes behind it
        plain = [eager(name), relu_beside(name)]
        if section == "model":
            plain = [in_model(provider) for provider in plain]
        all_four = [*plain, *map(compiled, plain)]
        yield timing_job(section, OrderingCase(shape), all_four, seconds, section != "forward")
