"""The losses suite: top-k cross-entropy against torch's cross_entropy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from benchmarks.cases import LossCase
from benchmarks.figures import Figure, ratios
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.loss_cases import EVEN, IMAGENET_21K, MIX, SHAPES, TEMPERATURES
from benchmarks.memory import Memory
from benchmarks.providers import DENSITIES
from benchmarks.providers.classification_losses import cross_entropy, ours, preselected, smooth
from benchmarks.report import Report, Subject
from benchmarks.timing import Record

SECTIONS = ("forward", "backward", "methods")
OTHERS = ("sinkhorn", "network", "softsort", "neuralsort")  # on the m largest scores

_LIMIT = 4.0  # of forward and backward, for so many classes with p_k = [.5, 0, 0, 0, .5]
_TITLES = {"forward": "Forward", "backward": "Forward + backward", "methods": "Forward + backward"}


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """Our time over that of torch's cross_entropy; the worst temperature of each cell."""
    worst: dict[tuple[str, str, str], Figure] = {}
    for section, title in _TITLES.items():
        chosen = [record for record in records if record.section == section]
        for record, ratio in ratios(chosen, "ours", cross_entropy.key):
            figure = _figure(title, record, ratio)
            cell = (figure.table, figure.row, figure.column)
            if cell not in worst or figure.value > worst[cell].value:
                worst[cell] = figure
    return list(worst.values())


def _figure(title: str, record: Record, ratio: float) -> Figure:
    case, name = record.case, record.provider.name.removeprefix("softorder ")
    promised = record.section == "backward" and (case.shape, case.p_k) == (IMAGENET_21K, MIX)
    table = f"{title}, × torch cross_entropy, p_k = {list(case.p_k)}"
    return Figure(table, str(case.shape), name, ratio, _LIMIT if promised else None)


SUBJECT = Subject(
    stem="losses",
    times="Top-k losses, milliseconds",
    worst="temperature",
    plot="Top-k losses",
    derive=derive,
)


def names() -> list[str]:
    """What `only` understands: sections, shapes, methods."""
    return [*SECTIONS, *(shape.key for shape in SHAPES), *DENSITIES, *OTHERS]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers."""
    jobs = list(_jobs(quick, only, seconds or 2.0))
    return work(Report(SUBJECT), jobs, not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    sections = pick(only, SECTIONS)
    shapes = [s for s in SHAPES if s.key in only] or SHAPES[1 if quick else 0 :]
    temperatures = (0.1,) if quick else TEMPERATURES
    named = [name for name in only if name in (*DENSITIES, *OTHERS)]
    densities = [name for name in DENSITIES if not named or name in named]
    others = [name for name in OTHERS if not named or name in named]
    timed = [name for name in ("forward", "backward") if name in sections and densities]
    for section, shape, p_k, tau in product(timed, shapes, (MIX, EVEN), temperatures):
        providers = [cross_entropy, *(ours(density) for density in densities)]
        backward = section == "backward"
        yield timing_job(section, LossCase(shape, p_k, tau), providers, seconds, backward)
    if "methods" in sections and others:
        for shape in shapes:
            peers = [preselected(name) for name in others if shape.n > 100]
            peers = peers or [ours(name) for name in others]
            providers = [cross_entropy, smooth, *peers]
            yield timing_job("methods", LossCase(shape, MIX, 0.1), providers, seconds, True)
