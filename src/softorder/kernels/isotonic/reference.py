"""Pool adjacent violators, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate

import torch
from torch import Tensor


def blocks(s: Tensor, w: Tensor, regularization: str) -> Tensor:
    """The first place of every place's block, row by row on the host."""
    rows = (v.reshape(-1, v.shape[-1]).double().tolist() for v in (s, w))
    found = [_SOLVERS[regularization](*row) for row in zip(*rows, strict=True)]
    return torch.tensor(found, dtype=torch.int64, device=s.device).reshape(s.shape)


def _l2(s: list[float], w: list[float]) -> list[int]:
    """Blocks by their number of places and the mean of s - w."""
    starts: list[int] = []
    sums: list[float] = []
    means: list[float] = []
    n = len(s)
    for place in range(n):
        start, total = place, s[place] - w[place]
        mean = total
        while starts and means[-1] <= mean:
            start, total = starts.pop(), total + sums.pop()
            means.pop()
            mean = total / (place + 1 - start)
        starts.append(start)
        sums.append(total)
        means.append(mean)
    return _spread(starts, n)


def _kl(s: list[float], w: list[float]) -> list[int]:
    """Blocks by log Σ e^s and log Σ e^w."""
    starts: list[int] = []
    pairs: list[tuple[float, float]] = []
    n = len(s)
    for place in range(n):
        start, (a, b) = place, (s[place], w[place])
        while starts and pairs[-1][0] - pairs[-1][1] <= a - b:
            start, (left, right) = starts.pop(), pairs.pop()
            a, b = _log_add(left, a), _log_add(right, b)
        starts.append(start)
        pairs.append((a, b))
    return _spread(starts, n)


def _log_add(a: float, b: float) -> float:
    """log(e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _spread(starts: list[int], n: int) -> list[int]:
    """From the first places of the blocks to one number per place."""
    first = [0] * n
    for start in starts:
        first[start] = start
    return list(accumulate(first, max))


_SOLVERS: dict[str, Callable[[list[float], list[float]], list[int]]] = {"l2": _l2, "kl": _kl}
