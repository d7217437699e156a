"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

METHODS = (
    "laplace",
    "logistic",
    "normal",
    "cauchy",
    "uniform",
    "sinkhorn",
    "softsort",
    "neuralsort",
    "sequential_softmax",
    "renormalized_sigmoid",
)


@dataclass(frozen=True)
class Config:
    sizes: tuple[int, ...]
    seconds: float  #: for the times of one method and size
    limit: float  #: seconds of one call; beyond it a curve ends
    entries: int  #: of the (k, n) matrix that some methods make; beyond it a curve ends
    seeds: int = 1
    temperature: float = 0.1
    methods: tuple[str, ...] = METHODS


PRESETS = {
    "quick": Config(sizes=(100, 1_000, 10_000, 100_000), seconds=0.1, limit=1.0, entries=5_000_000),
    "paper": Config(
        sizes=tuple(round(10 ** (power / 2)) for power in range(4, 14)),
        seconds=1.0,
        limit=60.0,
        entries=500_000_000,
    ),
}
