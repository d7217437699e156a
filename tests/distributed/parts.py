"""Rows for all ranks, and the part of each."""

import math

import numpy as np
from torch import distributed


def cuts(n, ranks, how):
    """Where the parts of a row begin and end."""
    if how == "even":
        return np.linspace(0, n, ranks + 1).astype(int)
    if how == "first":  # all on one rank
        return np.array([0] + [n] * ranks)
    return np.sort(np.concatenate([[0, n], np.random.default_rng(n).integers(0, n + 1, ranks - 1)]))


def own(values, how):
    """This rank's part of rows, on the last axis."""
    rank, size = distributed.get_rank(), distributed.get_world_size()
    ends = cuts(values.shape[-1], size, how)
    return values[..., ends[rank] : ends[rank + 1]]


def special_rows():
    inf, nan = math.inf, math.nan
    return np.array(
        [
            [1.0, -inf, 2.0, -inf, 0.0, 3.0],
            [inf, 1.0, 2.0, 0.0, inf, 3.0],
            [inf, inf, inf, 0.0, 1.0, 2.0],
            [-inf] * 6,
            [1.0, nan, 2.0, 0.0, 0.5, 3.0],
            [1.0] * 6,
        ]
    )
