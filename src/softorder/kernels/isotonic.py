"""Which places share a value in an isotonic regression.

Contract. For every row, the solution of

    l2:   min Σ (v_i - (s_i - w_i))²/2           over  v_1 ≥ v_2 ≥ ... ≥ v_n
    kl:   min Σ e^(s_i - v_i) + e^(w_i) v_i      over  v_1 ≥ v_2 ≥ ... ≥ v_n

is constant on blocks of consecutive places. `blocks` returns, for every place, the first place of
its block, int64. Within a block B the value is mean_B(s) - mean_B(w), or
log Σ_B e^s - log Σ_B e^w. Neighbours of equal value are one block. Sums are float64 for every
dtype. A place with s = -inf comes last and is a block of its own, or of such places. NaN stays in
its row. Time O(n) for a row: pool adjacent violators, where every place is pushed once and merged
at most once. Not differentiable: the formula above is, with the blocks as constants.

The operators `softorder::isotonic_l2` and `softorder::isotonic_kl` are served by the compiled
library on CPUs, and by the same algorithm in plain Python elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import accumulate

import torch
from torch import Tensor

from softorder.kernels import native
from softorder.kernels._operators import define, define_vmap


def blocks(s: Tensor, w: Tensor, regularization: str) -> Tensor:
    """The first place of every place's block; s and w have the same shape.

    >>> import torch
    >>> blocks(torch.tensor([3.0, 0.0, 1.0, -5.0]), torch.zeros(4), "l2")
    tensor([0, 1, 1, 3])
    """
    operator = getattr(torch.ops.softorder, f"isotonic_{regularization}")
    return operator(s.detach(), w.detach())


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


def _row_by_row(solve: Callable[[list[float], list[float]], list[int]]) -> Callable:
    def run(s: Tensor, w: Tensor) -> Tensor:
        rows = (v.reshape(-1, v.shape[-1]).double().tolist() for v in (s, w))
        found = [solve(*row) for row in zip(*rows, strict=True)]
        return torch.tensor(found, dtype=torch.int64, device=s.device).reshape(s.shape)

    return run


def _fake(s: Tensor, w: Tensor) -> Tensor:
    return s.new_empty(s.shape, dtype=torch.int64)


def _compiled(s: Tensor, w: Tensor, entropic: bool) -> Tensor:
    s, w = s.contiguous(), w.to(s.dtype).contiguous()
    first, n = torch.empty_like(s, dtype=torch.int64), s.shape[-1]
    native.call(
        "isotonic",
        native.pointer(s),
        native.pointer(w),
        native.pointer(first),
        s.numel() // max(n, 1),
        n,
        entropic,
        s.dtype is torch.float64,
        native.threads(),
    )
    return first


def _on_cpu(plain: Callable, entropic: bool) -> Callable:
    def run(s: Tensor, w: Tensor) -> Tensor:
        return _compiled(s, w, entropic) if native.enabled() else plain(s, w)

    return run


for _name, _solve in (("l2", _l2), ("kl", _kl)):
    _run = _row_by_row(_solve)
    define(
        f"isotonic_{_name}(Tensor s, Tensor w) -> Tensor",
        anywhere=_run,
        cpu=_on_cpu(_run, entropic=_name == "kl"),
        fake=_fake,
    )
    define_vmap(f"isotonic_{_name}", matrices=(0, 1), numbers=())
