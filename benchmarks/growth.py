"""The suite of growth: rank and sort per doubling of n, and the cache misses that explain it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import softorder as so
from benchmarks import machine, timing
from benchmarks.cases import OrderingCase, Shape
from benchmarks.growth_page import ORDERS, draw, growth_table, sentence
from benchmarks.jobs import Job, pick, work
from benchmarks.providers import Provider, torch_sort
from benchmarks.providers.softorder_orderings import compiled
from benchmarks.valgrind import counting
from benchmarks.valgrind.recording import record
from benchmarks.written import Written

SECTIONS = ("times", "misses")
SIZES = tuple(2**power for power in range(17, 23))
_QUICK = SIZES[:2]
_SECONDS, _SHORT = 30.0, 1.0  # for all sizes together


@dataclass
class Growth(Written):
    """The report of the suite."""

    stem = "growth"
    machine: dict[str, str] = field(default_factory=machine.facts)
    cache: str = field(default_factory=counting.last_level)
    timings: list[dict[str, Any]] = field(default_factory=list)
    misses: list[dict[str, Any]] = field(default_factory=list)

    def text(self) -> str:
        return f"{growth_table(self.json()).text()}\n\n{sentence(self.json())}\n"

    def markdown(self) -> str:
        image = "![Time and cache misses per score against n](growth.png)"
        table = growth_table(self.json()).markdown()
        blocks = [f"Measured on: {self.heading()}.", image, table, sentence(self.json())]
        return "\n\n".join(blocks) + "\n"

    def json(self) -> dict[str, Any]:
        return {
            "machine": self.machine,
            "cache": self.cache,
            "timings": self.timings,
            "misses": self.misses,
        }

    def draw(self, path: Path) -> bool:
        draw(self.json(), path)
        return True


def names() -> list[str]:
    """What `only` understands: sections."""
    return list(SECTIONS)


def run(quick: bool, only: Sequence[str], seconds: float | None, output: Path | None) -> Growth:
    """Measure, showing progress; print the table; write it, the raw numbers and a plot."""
    share = seconds or (_SHORT if quick else _SECONDS)
    jobs = list(_jobs(_QUICK if quick else SIZES, pick(only, SECTIONS), share))
    return work(Growth(), jobs, not (quick or only or seconds), output)


def _jobs(sizes: Sequence[int], sections: Sequence[str], seconds: float) -> Iterator[Job]:
    if "times" in sections:
        yield "times", partial(_time, sizes, seconds)
    if "misses" in sections:
        reason = counting.missing()
        if reason:
            print(f"softorder bench growth: no cache misses, which would need {reason}")
            return
        for operator in ORDERS:
            for n in sizes:
                yield f"misses {operator} {n:,}", partial(_miss, operator, n)


def _time(sizes: Sequence[int], seconds: float, report: Growth) -> None:
    """All sizes in alternation, so that a slow spell of the machine hits them alike."""
    cases = [OrderingCase(Shape(1, n)) for n in sizes]
    ours = [compiled(operator.removeprefix("soft_"), "laplace") for operator in ORDERS]
    providers: list[Provider] = [torch_sort.provider, *ours]
    for one in timing.measure_doubling("times", cases, providers, seconds, backward=False):
        about = {"section": "times", "n": one.case.shape.n, "provider": one.provider.name}
        report.timings.append(about | asdict(one.timing))


def _miss(operator: str, n: int, report: Growth) -> None:
    """Of the last cache, on one core: what a kernel fetches from memory, or writes there."""
    scores, level = OrderingCase(Shape(1, n)).scores(), counting.levels()[-1]
    calls = record(lambda: getattr(so, operator)(scores, temperature=0.1))
    counts = counting.count(calls, level, cache=True)
    total = sum(found["DLmr"] + found["DLmw"] for found in counts)
    report.misses.append({"section": level, "operator": operator, "n": n, "per_score": total / n})
