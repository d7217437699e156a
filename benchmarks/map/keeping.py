"""Memory in the map: the peak of a forward pass, what is kept for backward, what a formula needs.

A formula needs its result and, for the gradient, its input or its result again; one that goes by
rows of P, which its cost says, these rows. What sorts, in O(n log n), has a derivative that is a
walk along the sorted scores, and so needs their order as well, or it would have to sort once more.
Where it walks between roots, or thresholds, that took as long to find as all else, it needs these.
What is judged by a target, or a relevance, for every score needs that, too. What keeps more than
twice its scores beyond that is marked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks import memory
from benchmarks.cases import Shape
from benchmarks.map.entries import (
    LOGISTIC,
    OF_SCORES,
    RANKING,
    Entry,
    K,
    case_of,
    inputs_of,
)
from benchmarks.providers import DENSITIES
from softorder.cli._table import Table

SHAPE = Shape(1_024, 1_000)  # the kernel counts resident pages in batches: 4 MB and more
_FLOAT = 4
_SPARE = 2  # times the input
_PER_ROW = 16  # numbers: thresholds and the like


@dataclass(frozen=True)
class Kept:
    """Bytes of one entry at one size."""

    operator: str
    method: str
    shape: Shape
    forward: int | None  # peak of the forward pass, its result included
    saved: int  # until backward
    needed: int  # numbers that the formula has to keep for each score
    why: str  # which

    @property
    def scores(self) -> int:
        return self.shape.rows * self.shape.n

    @property
    def too_much(self) -> bool:
        numbers = self.scores * (self.needed + _SPARE) + _PER_ROW * self.shape.rows
        return self.saved > _FLOAT * numbers

    def json(self) -> dict[str, Any]:
        return {
            "operator": self.operator,
            "provider": f"softorder {self.method}",
            "rows": self.shape.rows,
            "n": self.shape.n,
            "needs": f"{self.needed}: {self.why}",
            "forward": self.forward,
            "saved": self.saved,
            "too_much": self.too_much,
        }


def measure(entry: Entry, shape: Shape = SHAPE) -> Kept:
    case = case_of(shape)
    operator, scores = entry.bind(case), inputs_of(entry, case)
    return kept(entry, shape, memory.peak(operator, scores))


def kept(entry: Entry, shape: Shape, forward: int | None = None) -> Kept:
    """What the graph keeps, and what it would need."""
    case = case_of(shape)
    saved = memory.saved(entry.bind(case), inputs_of(entry, case)) if entry.gradient else 0
    return Kept(entry.operator, entry.method, shape, forward, saved, *needs(entry, shape))


def needs(entry: Entry, shape: Shape) -> tuple[int, str]:
    """Numbers for each score that the gradient cannot do without, and which they are."""
    if not entry.gradient:
        return 0, "no gradient"
    rows = entry.rows_of_output(shape)
    if rows > 1:
        return rows, "the rows of P"
    if entry.operator.startswith("KHot"):  # whose cost is that of a draw
        return 2, "the scores, the draw"
    if " k" in entry.cost:
        return K, "k rows of P"
    parts = {"the scores": 1}
    if "log n" in entry.cost or "log(n" in entry.cost:
        parts["their order"] = 1
        parts |= _ROOTS.get(entry.operator, {}) if entry.method in DENSITIES else {}
    parts |= _TARGETS.get(entry.operator, {})
    return sum(parts.values()), ", ".join(parts)


#: What has been found along the sorted scores; losses, differences of tails, have it in float64.
_ROOTS = {
    "soft_sort": {"the roots": 1},
    "permutation_cross_entropy": {"the thresholds": 2},
    "ListwiseCE": {"the thresholds": 2},
}
#: What is given beside the scores: places in int64, relevances as floats; and what a decoder makes
#: of two codes.
_TARGETS = {
    **{name: {"the relevance": 1} for name in (*RANKING, *LOGISTIC, *OF_SCORES)},
    "permutation_cross_entropy": {"the places": 2},
    "MultiKLoss": {"the target": 1, "two decoded codes": 2},
}


def kept_table(kept: Sequence[Kept]) -> Table:
    """Bytes per score, what keeps most first."""
    table = Table(["operator", "method", "peak, forward", "kept", "needed", "which", ""])
    for one in sorted(kept, key=lambda one: -one.saved):
        peak = "" if one.forward is None else f"{one.forward / one.scores:.1f}"
        numbers = peak, f"{one.saved / one.scores:.1f}", str(_FLOAT * one.needed)
        mark = "✗ keeps too much" if one.too_much else ""
        table.add(one.operator, one.method, *numbers, one.why, mark)
    return table
