"""What networks, row softmax and permutahedra must reach."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, ratios
from benchmarks.memory import Memory
from benchmarks.timing import Record
from softorder import networks

_PEERS = {
    "difftopk": "difftopk, sparse splitter",
    "difftopk-dense": "difftopk, dense bitonic",
    "diffsort": "diffsort, bitonic",
}
_MIB = 2**20


def derive(records: list[Record], memories: list[Memory]) -> list[Figure]:
    """All the figures that these measurements give."""
    return [
        *_against_peers(records),
        *_splitter_against_bitonic(records),
        *_building(records),
        *_rows(records),
        *_projections(records),
        *_patterns(records),
        *_kept(memories),
        *_kept_by_peers(memories),
    ]


def _of(records: list[Record], section: str) -> list[Record]:
    return [record for record in records if record.section == section]


def _against_peers(records: list[Record]) -> Iterator[Figure]:
    """At least five times as fast as each of them."""
    title = "Network, k = 5, forward + backward, × the packages"
    for key, name in _PEERS.items():
        for ours in ("splitter", "bitonic"):
            for record, ratio in ratios(_of(records, "peers"), ours, key):
                row = f"{ours}, {record.case.shape}"
                yield Figure(title, row, name, ratio, limit=0.2)


def _splitter_against_bitonic(records: list[Record]) -> Iterator[Figure]:
    title = "Splitter network, k = 5, forward + backward, × a bitonic one"
    for record, ratio in ratios(_of(records, "networks"), "splitter", "bitonic"):
        yield Figure(title, str(record.case.shape), "splitter", ratio, limit=1.0)


def _building(records: list[Record]) -> Iterator[Figure]:
    title = "Building a network, seconds"
    for record in _of(records, "building"):
        row = f"n = {record.case.shape.n:,}, k = {record.case.k}"
        kind = record.provider.key.removeprefix("build-")
        yield Figure(title, row, kind, record.timing.minimum, limit=5.0)


def _rows(records: list[Record]) -> Iterator[Figure]:
    title = "5 rows of a permutation, forward, × one softmax of 5×n"
    for method in ("softsort", "neuralsort"):
        for record, ratio in ratios(_of(records, "rows"), method, "softmax-rows"):
            row = f"{record.case.shape}, τ = {record.case.temperature:g}"
            yield Figure(title, row, method, ratio, limit=2.0)


def _projections(records: list[Record]) -> Iterator[Figure]:
    """Both together within 0.6."""
    title = "Permutahedron, forward + backward, × torch.sort forward"
    chosen = _of(records, "projections")
    for case in dict.fromkeys(record.case for record in chosen):
        here = {r.provider.key: r.timing.minimum for r in chosen if r.case == case}
        rank, sort = here["projected-rank"] / here["sort"], here["projected-sort"] / here["sort"]
        row = str(case)
        yield Figure(title, row, "rank", rank, limit=None)
        yield Figure(title, row, "sort", sort, limit=None)
        yield Figure(title, row, "both together", rank + sort, limit=0.6)


def _patterns(records: list[Record]) -> Iterator[Figure]:
    """Quadratic would be 4."""
    title = "Permutahedron on hard patterns, forward + backward, time(2n)/time(n)"
    chosen = _of(records, "patterns")
    times = {(r.case.pattern, r.provider.key, r.case.shape.n): r.timing.minimum for r in chosen}
    for (pattern, key, n), seconds in times.items():
        twice = times.get((pattern, key, 2 * n))
        if twice:
            column = key.removeprefix("projected-")
            yield Figure(title, f"{pattern}, n = {n:,}", column, twice / seconds, limit=2.4)


def _kept(memories: list[Memory]) -> Iterator[Figure]:
    """At most n numbers for each layer and each row of P."""
    title = "Network, kept for the backward call, MiB"
    for memory in memories:
        kind, case = memory.provider.key, memory.case
        if kind in networks.SELECTION_KINDS:
            layers = networks.selection_network(case.shape.n, case.k, kind).depth + case.k
            limit = 4 * case.shape.rows * case.shape.n * layers / _MIB
            yield Figure(title, str(case.shape), kind, memory.saved / _MIB, limit)


def _kept_by_peers(memories: list[Memory]) -> Iterator[Figure]:
    title = "Splitter network, memory, × the packages"
    ours = {memory.case: memory for memory in memories if memory.provider.key == "splitter"}
    for memory in memories:
        name, here = _PEERS.get(memory.provider.key), ours.get(memory.case)
        if name and here:
            row = str(memory.case.shape)
            yield Figure(title, f"{row}, kept", name, here.saved / memory.saved, limit=1.0)
            if here.forward is not None and memory.forward:
                ratio = here.forward / memory.forward
                yield Figure(title, f"{row}, peak forward", name, ratio, limit=1.0)
