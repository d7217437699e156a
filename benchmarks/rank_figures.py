"""What rank, sort and permutation must reach."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.cases import Shape
from benchmarks.figures import Figure, ratios
from benchmarks.memory import Memory
from benchmarks.timing import Record

_OPERATORS = ("rank", "sort")
_FORWARD = {Shape(1, 1_000_000): 0.35}  # × torch.sort; elsewhere 0.5
_MIB = 2**20


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """All the figures that these measurements give."""
    return [
        *_against_sort(records, "forward", "Forward, × torch.sort"),
        *_against_sort(records, "backward", "Forward + backward, × torch.sort forward"),
        *_learned(records),
        *_growth(records, "growth", "Growth of the forward pass, time(2n)/time(n)"),
        *_growth(records, "growth-backward", "Growth of forward + backward, time(2n)/time(n)"),
        *_argsort(records),
        *_matrix(records),
        *_memory_per_score(memories),
    ]


def _limit(shape: Shape, section: str) -> float:
    return 0.6 if section == "backward" else _FORWARD.get(shape, 0.5)


def _against_sort(records: list[Record], section: str, title: str) -> Iterator[Figure]:
    chosen = [record for record in records if record.section == section]
    for operator in _OPERATORS:
        for record, ratio in ratios(chosen, operator, "sort-hard"):
            shape, column = record.case.shape, f"{operator}, {record.provider.density}"
            promised = record.provider.density == "laplace"
            limit = _limit(shape, section) if promised else None
            yield Figure(title, str(shape), column, ratio, limit)


def _learned(records: list[Record]) -> Iterator[Figure]:
    chosen = [record for record in records if record.section == "learned"]
    title = "Learned temperature, forward + backward, × a fixed one"
    for operator in _OPERATORS:
        for record, ratio in ratios(chosen, f"{operator}-learning", operator):
            yield Figure(title, str(record.case.shape), operator, ratio, limit=1.3)


def _growth(records: list[Record], kind: str, title: str) -> Iterator[Figure]:
    chosen = [record for record in records if record.section.split()[0] == kind]
    times = {(r.section, r.provider.key, r.case.shape.n): r.timing.minimum for r in chosen}
    for (section, key, n), seconds in times.items():
        twice = times.get((section, key, 2 * n))
        if twice:
            yield Figure(title, f"n = {n:,}", key, twice / seconds, limit=2.4)


def _argsort(records: list[Record]) -> Iterator[Figure]:
    chosen = [record for record in records if record.section == "argsort"]
    for record, ratio in ratios(chosen, "argsort", "sort-hard"):
        yield Figure("argsort, × torch.sort", str(record.case.shape), "argsort", ratio, 0.25)


def _matrix(records: list[Record]) -> Iterator[Figure]:
    title = "Permutation matrix, × writing and softmaxing n×n"
    chosen = [record for record in records if record.section == "permutation"]
    for record, ratio in ratios(chosen, "permutation", "softmax-matrix"):
        yield Figure(title, str(record.case.shape), record.provider.density, ratio, limit=2.0)


def _memory_per_score(memories: list[Memory]) -> Iterator[Figure]:
    """Linear: so many bytes per score at every n. A float32 has 4, a place in an order 8.

    The peak is that of the process, which reuses what it has freed: small rows show nothing.
    """
    for memory in memories:
        n, key = memory.case.shape.n, memory.provider.key
        if memory.forward:
            title = "Peak memory of a forward call, bytes per score"
            yield Figure(title, f"n = {n:,}", key, memory.forward / n, limit=64.0)
        title = "Kept for the backward call, bytes per score"
        yield Figure(title, f"n = {n:,}", key, memory.saved / n, limit=64.0)
