"""Odd-even transposition sort, as stages."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from softorder.networks.stages import Stage, stage


def odd_even(n: int) -> Iterator[Stage]:
    """n stages of neighbours (Knuth 1998, section 5.3.4).

    Wires 0 and 1, 2 and 3, ... are compared, then 1 and 2, 3 and 4, ..., in turn.
    """
    for turn in range(n):
        low = np.arange(turn % 2, n - 1, 2)
        yield stage(low, low + 1)
