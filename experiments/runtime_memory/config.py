"""How much is measured; what is measured is in the parts."""

from __future__ import annotations

from dataclasses import dataclass

PARTS = ("top-k, k = 5", "top-k, k = n/2", "permutation", "order", "relaxed", "sampling")


@dataclass(frozen=True)
class Config:
    sizes: tuple[int, ...]  #: the n, ascending
    seconds: float  #: for the times of one method and size
    limit: float  #: seconds of forward and backward; a curve ends before it
    memory: float  #: megabytes; a curve ends before it
    common: int = 1_000  #: one of the sizes: at this n all are compared that reach it
    parts: tuple[str, ...] = PARTS
    seeds: int = 1


def _half_decades(first: int, last: int) -> tuple[int, ...]:
    return tuple(round(10 ** (power / 2)) for power in range(2 * first, 2 * last + 1))


PRESETS = {
    "quick": Config(sizes=_half_decades(1, 6), seconds=0.06, limit=0.3, memory=2_000),
    "paper": Config(sizes=_half_decades(1, 7), seconds=1.0, limit=10.0, memory=8_000),
}
