"""What networks are built from: stages of comparators that share no wire, and their scheduling.

Constructions are written for a power of two of wires. Comparators only ever move the larger value
to the higher wire, so wires from n on could carry +∞ and would keep it: they are cut off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

Stage = np.ndarray  #: (2, m): the wires of the smaller values, and of the larger ones


def stage(low: np.ndarray, high: np.ndarray) -> Stage:
    """A stage from two arrays of wires, of any shape."""
    return np.stack([low.ravel(), high.ravel()])


def cut(stages: Iterable[Stage], n: int) -> Iterator[Stage]:
    """The stages without the wires from n on."""
    return (pairs[:, pairs[1] < n] for pairs in stages)


def live(stages: Iterable[Stage], wires: np.ndarray, n: int) -> list[Stage]:
    """The stages without the comparators that the values on these wires do not depend on."""
    needed = np.zeros(n, dtype=bool)
    needed[wires] = True
    kept = []
    for pairs in reversed(list(stages)):
        used = pairs[:, needed[pairs].any(0)]
        needed[used] = True
        kept.append(used)
    return kept[::-1]


def scheduled(stages: Iterable[Stage], n: int) -> tuple[np.ndarray, ...]:
    """Layers: every comparator as early as its wires allow."""
    busy = np.zeros(n, dtype=np.int64)  # how many layers a wire has gone through
    placed = [(np.zeros((2, 0), dtype=np.int64), np.zeros(0, dtype=np.int64))]
    for pairs in stages:
        layer = busy[pairs].max(0)
        busy[pairs] = layer + 1
        placed.append((pairs, layer))
    pairs, layer = (np.concatenate(parts, axis=-1) for parts in zip(*placed, strict=True))
    order = np.lexsort((pairs[0], layer))
    ends = np.cumsum(np.bincount(layer, minlength=busy.max(initial=0)))[:-1]
    return tuple(np.split(pairs[:, order], ends, axis=1)) if len(layer) else ()


def ones(i: np.ndarray) -> np.ndarray:
    """How many bits are set."""
    count = np.zeros_like(i)
    while i.any():
        count, i = count + (i & 1), i >> 1
    return count
