"""Splitter selection networks (Petersen et al. 2022, appendix B), as stages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softorder.networks.stages import Stage, ones, stage


def splitter(n: int, k: int) -> tuple[list[Stage], np.ndarray]:
    """The stages, and the wires of the k smallest in order.

    Every wire has a least rank, which its value cannot be below: 0 at first. A cascade of splitters
    over wires l_0, l_1, ... of the same least rank r raises that of l_i to r + 2^ones(i) - 1, where
    ones(i) counts bits. From rank k on a wire is of no interest. This goes on, the highest ranks
    first, until no two wires share a rank below k.
    """
    rank = np.zeros(n, dtype=np.int64)
    stages: list[Stage] = []
    while (np.bincount(rank, minlength=k)[:k] > 1).any():
        for r in range(k - 1, -1, -1):
            wires = np.flatnonzero(rank == r)
            stages += cascade(wires)
            rank[wires] += 2 ** ones(np.arange(len(wires))) - 1
    return stages, np.argsort(rank, kind="stable")[:k]


def cascade(wires: np.ndarray) -> Iterator[Stage]:
    """Splitters over the wires, over the halves, and so on.

    A splitter over m wires compares l_i with l_{i+s}, s = 2^(⌈log2 m⌉ - 1), for i < m - s.
    """
    m = len(wires)
    i = np.arange(m)
    for e in reversed(range((m - 1).bit_length() if m else 0)):
        s = 1 << e
        low = i[:-s][i[:-s] & s == 0]
        yield stage(wires[low], wires[low + s])
