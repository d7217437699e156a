"""The suite of the other families: networks, row softmax, projections onto a permutahedron."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from benchmarks import families_figures, memory, timing
from benchmarks.cases import PATTERNS, Case, OrderingCase, PatternCase, Shape
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.providers import Provider, torch_softmax_rows, torch_sort
from benchmarks.providers.softorder_families import building, network, projected, rows
from benchmarks.report import Report, Subject
from softorder.kernels import _native

SECTIONS = ("networks", "building", "peers", "rows", "projections", "patterns", "memory")
K = 5
NETWORKS = (Shape(128, 1_024), Shape(128, 10_450))
PEERS = Shape(128, 1_024)  # what difftopk's sparse networks can hold
DENSE = Shape(1, 1_024)  # what dense networks can hold: n² numbers per row and layer
ROWS = (Shape(1, 10_450), Shape(128, 10_450))
LONG = Shape(1, 1_000_000)
TEMPERATURES = (1.0, 0.1, 1e-3)

SUBJECT = Subject(
    stem="families",
    times="Forward + backward, milliseconds (k = 5, τ = 0.1)",
    worst="its cases",
    plot="Other families",
    derive=families_figures.derive,
)


def names() -> list[str]:
    """What `only` understands: sections."""
    return list(SECTIONS)


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers."""
    if not _native.enabled():
        raise SystemExit("softorder bench: the compiled kernels are missing or switched off")
    jobs = list(_jobs(quick, only, seconds or (0.3 if quick else 2.0)))
    return work(Report(SUBJECT), jobs, not (quick or only or seconds), output)


def _jobs(quick: bool, only: Sequence[str], seconds: float) -> Iterator[Job]:
    small = Shape(1, 100_000) if quick else LONG
    sections = {
        "networks": lambda: _networks(quick, seconds),
        "building": lambda: _building(quick, seconds),
        "peers": lambda: _peers(quick, seconds),
        "rows": lambda: _rows(seconds),
        "projections": lambda: _projections(small, seconds),
        "patterns": lambda: _patterns(small, seconds),
        "memory": lambda: _memory(quick),
    }
    for name in pick(only, SECTIONS):
        yield from sections[name]()


def _networks(quick: bool, seconds: float) -> Iterator[Job]:
    """A splitter network against a bitonic one."""
    for shape in NETWORKS[: 1 if quick else None]:
        yield timing_job("networks", Case(shape, K, 0.1), _OURS, seconds, backward=True)


def _building(quick: bool, seconds: float) -> Iterator[Job]:
    case = Case(Shape(1, 4_096 if quick else 65_536), 8, 0.1)
    merges = "odd_even_merge", "bitonic", "pairwise", "splitter"  # whole sorts are not for such n
    providers = [building(kind) for kind in merges]
    yield timing_job("building", case, providers, seconds)


def _peers(quick: bool, seconds: float) -> Iterator[Job]:
    for shape, theirs in _others(quick).items():
        yield timing_job("peers", Case(shape, K, 0.1), [*_OURS, *theirs], seconds, backward=True)


def _others(quick: bool) -> dict[Shape, list[Provider]]:
    """Who is installed, on the largest batch that fits. At n = 10,450 none of them does.

    A dense layer is n×n matrices; and so are those that the sparse networks are made from.
    """
    found: dict[Shape, list[Provider]] = {}
    if find_spec("difftopk"):
        from benchmarks.providers import difftopk_network

        found.setdefault(Shape(8, 128) if quick else PEERS, []).append(
            difftopk_network.sparse_splitter
        )
        found.setdefault(Shape(1, 128) if quick else DENSE, []).append(
            difftopk_network.dense_bitonic
        )
    if find_spec("diffsort"):
        from benchmarks.providers import diffsort_network

        found.setdefault(Shape(1, 128) if quick else DENSE, []).append(diffsort_network.provider)
    return found


def _rows(seconds: float) -> Iterator[Job]:
    ours = [rows(name, name, f"softorder {name}") for name in ("softsort", "neuralsort")]
    for shape in ROWS:
        for temperature in (1.0, 0.1):
            case = Case(shape, K, temperature)
            yield timing_job("rows", case, [torch_softmax_rows.provider, *ours], seconds)


def _projections(shape: Shape, seconds: float) -> Iterator[Job]:
    """torch.sort has no useful gradient: it is measured forward."""
    for temperature in TEMPERATURES:
        case = OrderingCase(shape, temperature)
        yield f"projections {case}", partial(_against_sort, case, seconds)


def _against_sort(case: OrderingCase, seconds: float, report: Report) -> None:
    report.records += timing.measure_mixed(
        "projections", case, [torch_sort.provider], _PROJECTED, seconds
    )


def _patterns(shape: Shape, seconds: float) -> Iterator[Job]:
    """n and 2n in one run, so that a slow spell of the machine hits them alike."""
    for pattern in PATTERNS:
        sizes = (Shape(1, shape.n // 2), shape)
        cases = [PatternCase(size, 0.1, pattern) for size in sizes]
        yield f"patterns {pattern}", partial(_double, cases, seconds)


def _double(cases: list[PatternCase], seconds: float, report: Report) -> None:
    report.records += timing.measure_doubling("patterns", cases, _PROJECTED, seconds, backward=True)


def _memory(quick: bool) -> Iterator[Job]:
    shapes = {shape: list(_OURS) for shape in NETWORKS[: 1 if quick else None]}
    for shape, theirs in _others(quick).items():
        shapes[shape] = [*_OURS, *theirs]
    for shape, providers in shapes.items():
        for provider in providers:
            case = Case(shape, K, 0.1)
            yield f"memory {case} {provider.key}", partial(_remember, case, provider)


def _remember(case: Case, provider: Provider, report: Report) -> None:
    report.memories.append(memory.measure(case, provider))


_OURS = (network("splitter"), network("bitonic"))
_PROJECTED = (projected("rank"), projected("sort"))
