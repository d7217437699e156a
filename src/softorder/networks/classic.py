"""Sorting networks, and the selection networks that are made of the same parts, as stages.

Every function takes a power of two of wires, n, and how many of the smallest are wanted, also a
power of two. With all n of them it is the sorting network. With m of them every merge passes on
m values only: depth ½ log m (log m + 1) + (log n - log m)(log m + 1) (Wah & Chen 1984).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from softorder.networks.stages import Stage, ones, stage


def odd_even_merge(n: int, m: int) -> Iterator[Stage]:
    """Batcher's odd-even mergesort (1968)."""
    for halves in _halves(n, m):
        yield from _merge(halves.reshape(len(halves), -1))


def _merge(blocks: np.ndarray) -> Iterator[Stage]:
    """Merges the two sorted halves of every block.

    First i with i + half; then, for p = half/2, ..., 1, every second run of p with the next one.
    """
    half = blocks.shape[1] // 2
    yield stage(blocks[:, :half], blocks[:, half:])
    for p in reversed(_powers_below(half)):
        runs = blocks[:, p:-p].reshape(-1, 2, p)
        yield stage(runs[:, 0], runs[:, 1])


def bitonic(n: int, m: int) -> Iterator[Stage]:
    """Batcher's bitonic sorter (1968), with all comparators in one direction.

    The first half, and the second one backwards, are bitonic together: comparing them leaves the
    smaller values in the first half and two bitonic halves, which half-cleaners sort.
    """
    for halves in _halves(n, m):
        yield stage(halves[:, 0], halves[:, 1, ::-1])
        for p in reversed(_powers_below(halves.shape[-1])):
            runs = halves.reshape(-1, 2, p)
            yield stage(runs[:, 0], runs[:, 1])


def bitonic_sort(n: int, m: int) -> Iterator[Stage]:
    """The whole bitonic sorter, however few are wanted: its k rows are those of the sort."""
    return bitonic(n, n)


def pairwise(n: int, m: int) -> Iterator[Stage]:
    """Parberry's pairwise sorting network (1992); its selection by Zazon-Ivry & Codish (2012).

    Neighbours are compared; the smaller ones a_0, a_1, ... and the larger ones b_0, b_1, ... are
    sorted in the same way, which keeps a_i ≤ b_i; then b_i is compared with a_{i+d} for
    d = half, ..., 2, 1. Of the m smallest, at most m/2 are larger ones of their pairs.
    """
    strides = _powers_below(n)
    for stride in strides:
        pairs = np.arange(n).reshape(-1, 2, stride)
        yield stage(pairs[:, 0], pairs[:, 1])
    for stride in reversed(strides):
        a, b = np.arange(n).reshape(-1, 2, stride).transpose(1, 0, 2)  # a list in every column
        wanted = m >> ones(np.arange(stride))
        place = np.arange(len(a))[:, None]
        for d in reversed(_powers_below(len(a))):
            kept = (place[d:] < wanted) & (place[:-d] < wanted // 2)
            yield stage(b[:-d][kept], a[d:][kept])


def _halves(n: int, m: int) -> Iterator[np.ndarray]:
    """For every round of merges the wires (blocks, 2, at most m) to be merged, two by two."""
    for half in _powers_below(n):
        yield np.arange(n).reshape(-1, 2, half)[..., :m]


def _powers_below(n: int) -> list[int]:
    """1, 2, 4, ... below n."""
    return [1 << e for e in range((n - 1).bit_length())]


BUILDERS: dict[str, Callable[[int, int], Iterator[Stage]]] = {
    "odd_even_merge": odd_even_merge,
    "bitonic": bitonic,
    "bitonic_sort": bitonic_sort,
    "pairwise": pairwise,
}
