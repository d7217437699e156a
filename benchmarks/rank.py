"""The rank and sort suite: what is measured together, what is printed, what is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import memory, rank_figures, timing
from benchmarks.cases import OrderingCase, Shape
from benchmarks.jobs import Job, mixed_job, pick, work
from benchmarks.providers import Provider, neural_sort, soft_sort, torch_softmax_matrix, torch_sort
from benchmarks.providers.softorder_orderings import argsort, compiled, learning, plain
from benchmarks.rank_cases import ARGSORT, FULL, MATRIX, PLAIN, QUADRATIC, QUICK, Plan
from benchmarks.report import Report, Subject
from softorder.kernels import _native

SECTIONS = (
    "forward",
    "backward",
    "learned",
    "growth",
    "argsort",
    "permutation",
    "orderings",
    "linear",
)
OPERATORS = ("rank", "sort")
DENSITIES = ("laplace", "uniform")  # those that do it in O(n log n)

SUBJECT = Subject(
    stem="rank",
    times="Forward of one row, milliseconds (τ = 0.1)",
    worst="its cases",
    plot="Rank and sort of one row, τ = 0.1, float32, forward",
    derive=rank_figures.derive,
)

_HARD = replace(torch_sort.provider, key="sort-hard")


def names() -> list[str]:
    """What `only` understands: sections, shapes, operators, densities."""
    return [*SECTIONS, *(shape.key for shape in FULL.shapes), *OPERATORS, *DENSITIES]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers and a plot."""
    if not _native.enabled():
        raise SystemExit("softorder bench: the compiled kernels are missing or switched off")
    plan = QUICK if quick else FULL
    plan = replace(plan, seconds=seconds or plan.seconds)
    return work(Report(SUBJECT), list(_jobs(plan, only)), not (quick or only or seconds), output)


def _jobs(plan: Plan, only: Sequence[str]) -> Iterator[Job]:
    operators, densities = pick(only, OPERATORS), pick(only, DENSITIES)
    keys = pick(only, [shape.key for shape in FULL.shapes])
    shapes = [shape for shape in FULL.shapes if shape.key in only] or list(plan.shapes)
    ours = [compiled(operator, density) for operator in operators for density in densities]
    usual = [provider for provider in ours if provider.density == densities[0]]
    sections = {
        "forward": _against_sort(plan, [s for s in shapes if s.key in keys], ours, backward=False),
        "backward": _against_sort(plan, [s for s in shapes if s.key in keys], ours, backward=True),
        "learned": _learned(plan, [s for s in shapes if s.key in keys], operators, densities[0]),
        "growth": _growth(plan, usual),
        "argsort": _timed_once("argsort", OrderingCase(ARGSORT), [_HARD, argsort], plan),
        "permutation": _matrix(plan, densities),
        "orderings": _peers(plan, operators, densities[0]),
        "linear": _memory(plan, usual),
    }
    for name in pick(only, SECTIONS):
        yield from sections[name]


def _timed(
    section: str,
    case: OrderingCase,
    chosen: Sequence[Provider],
    plan: Plan,
    backward: Sequence[Provider] = (),
) -> Job:
    return mixed_job(section, case, chosen, backward, plan.seconds)


def _timed_once(
    section: str, case: OrderingCase, chosen: Sequence[Provider], plan: Plan
) -> Iterator[Job]:
    yield _timed(section, case, chosen, plan)


def _against_sort(
    plan: Plan, shapes: Sequence[Shape], ours: Sequence[Provider], backward: bool
) -> Iterator[Job]:
    """torch.sort has no useful gradient: it is measured forward in both."""
    for shape in shapes:
        case = OrderingCase(shape)
        if backward:
            yield _timed("backward", case, [_HARD], plan, backward=ours)
        else:
            yield _timed("forward", case, [_HARD, *ours], plan)


def _learned(
    plan: Plan, shapes: Sequence[Shape], operators: Sequence[str], density: str
) -> Iterator[Job]:
    """A temperature with a gradient beside one without."""
    both = [make(name, density) for name in operators for make in (compiled, learning)]
    for shape in shapes:
        yield _timed("learned", OrderingCase(shape), [], plan, backward=both)


def _growth(plan: Plan, ours: Sequence[Provider]) -> Iterator[Job]:
    """n and 2n in one run, so that a slow spell of the machine hits them alike."""
    for n in plan.doublings:
        cases = [OrderingCase(Shape(1, size)) for size in (n, 2 * n)]
        for kind in ("growth", "growth-backward"):
            yield f"{kind} {cases[0]}", partial(_double, f"{kind} {n}", cases, ours, plan)


def _double(
    section: str,
    cases: Sequence[OrderingCase],
    ours: Sequence[Provider],
    plan: Plan,
    report: Report,
) -> None:
    backward = section.startswith("growth-backward")
    found = timing.measure_doubling(section, cases, ours, 2 * plan.seconds, backward)
    report.records += found


def _matrix(plan: Plan, densities: Sequence[str]) -> Iterator[Job]:
    ours = [compiled("permutation", density) for density in densities]
    yield _timed("permutation", OrderingCase(MATRIX), [torch_softmax_matrix.provider, *ours], plan)


def _peers(plan: Plan, operators: Sequence[str], density: str) -> Iterator[Job]:
    """Everybody on one row, as far as it takes no minutes: the table of times and the plot."""
    quadratic = [neural_sort.provider, soft_sort.provider]
    for case in plan.sweep_cases():
        n = case.shape.n
        makers = (compiled, plain) if n <= PLAIN else (compiled,)
        ours = [make(name, density) for name in operators for make in makers]
        yield _timed("peers", case, [*ours, _HARD, *(quadratic if n <= QUADRATIC else [])], plan)


def _memory(plan: Plan, ours: Sequence[Provider]) -> Iterator[Job]:
    sizes = dict.fromkeys(size for n in plan.memory for size in (n, 2 * n))
    for n in sizes:
        for provider in ours:
            case = OrderingCase(Shape(1, n))
            yield f"linear {case}", partial(_remember, case, provider)


def _remember(case: OrderingCase, provider: Provider, report: Report) -> None:
    report.memories.append(memory.measure(case, provider))
