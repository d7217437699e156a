"""How fast soft_topk is on this machine, beside torch.softmax, torch.topk and torch.sort."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

import softorder as so
from softorder.cli._table import Table
from softorder.cli._timing import Timing, interleaved

Shape = tuple[int, int]
Speeds = dict[Shape, dict[str, Timing]]

SHAPES: tuple[Shape, ...] = ((4096, 64), (128, 1_000), (32, 50_257), (1, 1_000_000))


def measure(shape: Shape, methods: tuple[str, ...], seconds: float) -> dict[str, Timing]:
    """Forward calls on normal scores in float32, k = n/10, temperature 0.1, in alternation."""
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    k = shape[1] // 10
    calls: dict[str, Callable[[], object]] = {
        "softmax": partial(torch.softmax, scores, -1),
        **{
            name: partial(so.soft_topk, scores, k, method=name, temperature=0.1) for name in methods
        },
        "topk": partial(torch.topk, scores, k),
        "sort": partial(torch.sort, scores),
    }
    return interleaved(calls, seconds)


def table(speeds: Speeds) -> Table:
    """Milliseconds, and how many softmaxes that is."""
    names = list(next(iter(speeds.values())))
    result = Table(["milliseconds", *(f"{rows:,}×{n:,}" for rows, n in speeds)])
    for name in names:
        cells = []
        for timings in speeds.values():
            times = timings[name].minimum / timings["softmax"].minimum
            cells.append(f"{1e3 * timings[name].minimum:.3f} ({times:5.1f})")
        result.add(label(name), *cells)
    return result


def label(name: str) -> str:
    torchs = ("softmax", "topk", "sort")
    return f"torch.{name}" if name in torchs else f"soft_topk {name}"
