"""The soft top-k suite: what is measured together, what is printed, what is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks import memory, providers
from benchmarks.cases import FULL, QUICK, ROUTER, SMALL_CALL, Case, Plan
from benchmarks.jobs import Job, pick, timing_job, work
from benchmarks.report import Report
from softorder.kernels import _native

SECTIONS = ("forward", "backward", "peers", "plain", "call", "memory")


def names() -> list[str]:
    """What `only` understands: sections, shapes, densities, providers."""
    shapes = [shape.key for shape in FULL.shapes]
    keys = [provider.key for provider in (*_ours(("laplace",)), *_others(("laplace",)))]
    return [*SECTIONS, *shapes, *providers.DENSITIES, *keys]


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Report:
    """Measure, showing progress; print the tables; write them beside the raw numbers and a plot."""
    if not _native.enabled():
        raise SystemExit("softorder bench: the compiled kernels are missing or switched off")
    plan = _restrict(QUICK if quick else FULL, only, seconds)
    return work(Report(), list(_jobs(plan, only)), not (quick or only or seconds), output)


def _restrict(plan: Plan, only: Sequence[str], seconds: float | None) -> Plan:
    """Named shapes leave out what is measured at shapes of its own, unless that is named too."""
    plan = replace(plan, seconds=seconds or plan.seconds)
    named = tuple(shape for shape in FULL.shapes if shape.key in only)
    if not named:
        return plan
    memory = plan.memory if "memory" in only else ()
    return replace(plan, shapes=named, sweep=(), memory=memory, calls="call" in only)


def _ours(densities: Sequence[str]) -> list[providers.Provider]:
    return [providers.native(density) for density in densities]


def _others(densities: Sequence[str]) -> list[providers.Provider]:
    return [providers.plain(densities[0]), *providers.peers()]


def _jobs(plan: Plan, only: Sequence[str]) -> Iterator[Job]:
    densities = pick(only, providers.DENSITIES)
    ours = _ours(densities)
    everybody = [*ours[:1], *_others(densities)]
    keys = pick(only, [provider.key for provider in everybody])
    compared = [provider for provider in everybody if provider.key in keys]
    sections = {
        "forward": _against_softmax(plan, ours, backward=False),
        "backward": _against_softmax(plan, ours, backward=True),
        "peers": _peers(plan, compared),
        "plain": _plain(plan, densities[0]),
        "call": _calls(plan, ours),
        "memory": _memory(plan, ours),
    }
    for name in pick(only, SECTIONS):
        yield from sections[name]


def _against_softmax(
    plan: Plan, ours: Sequence[providers.Provider], backward: bool
) -> Iterator[Job]:
    """Every k and temperature; the hard top-k takes part where it is a yardstick."""
    section = "backward" if backward else "forward"
    for shape in plan.shapes:
        for case in plan.cases(shape):
            chosen = [providers.softmax, *ours]
            usual = case.k == shape.n // 10 or (shape == ROUTER and case.k == 8)
            if usual and not backward:
                chosen.append(providers.topk)
            yield timing_job(section, case, chosen, plan.seconds, backward)


def _peers(plan: Plan, compared: Sequence[providers.Provider]) -> Iterator[Job]:
    """Everybody, at the usual k and temperature: the table of times and the plot."""
    cases = [plan.usual_case(shape) for shape in plan.shapes] + plan.sweep_cases()
    for case in dict.fromkeys(cases):
        yield timing_job("peers", case, compared, plan.seconds)


def _plain(plan: Plan, density: str) -> Iterator[Job]:
    """The plain torch path and the closed form, at the temperatures that `peers` leaves out."""
    both = [providers.plain(density), providers.closed_form]
    for shape in plan.shapes:
        for temperature in plan.temperatures:
            case = replace(plan.usual_case(shape), temperature=temperature)
            if shape.n >= 1000 and case != plan.usual_case(shape):
                yield timing_job("plain", case, both, plan.seconds)


def _calls(plan: Plan, ours: Sequence[providers.Provider]) -> Iterator[Job]:
    if plan.calls:
        yield timing_job("call", SMALL_CALL, ours, plan.seconds)
        yield timing_job("call-backward", SMALL_CALL, ours, plan.seconds, backward=True)


def _memory(plan: Plan, ours: Sequence[providers.Provider]) -> Iterator[Job]:
    for shape in plan.memory:
        for provider in ours:
            case = Case(shape, k=1000, temperature=0.1)
            yield f"memory {shape}", partial(_remember, case, provider)


def _remember(case: Case, provider: providers.Provider, report: Report) -> None:
    report.memories.append(memory.measure(case, provider))
