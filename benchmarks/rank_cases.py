"""What the rank and sort suite measures."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cases import OrderingCase, Shape

SHAPES = (Shape(128, 1_000), Shape(128, 10_450), Shape(1, 1_000_000))
ARGSORT = Shape(1, 1_000_000)
MATRIX = Shape(16, 1_000)
QUADRATIC = 4_096  # the n×n formulas are measured up to here
PLAIN = 1_000_000  # and plain torch up to here


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    shapes: tuple[Shape, ...]
    sweep: tuple[int, ...]  # the n of the plot
    doublings: tuple[int, ...]  # n, to be compared with 2n
    memory: tuple[int, ...]  # n, to be compared with 2n
    seconds: float  # for all providers of one case together

    def sweep_cases(self) -> list[OrderingCase]:
        return [OrderingCase(Shape(1, n)) for n in self.sweep]


FULL = Plan(
    shapes=SHAPES,
    sweep=tuple(round(10 ** (power / 2)) for power in range(4, 15)),
    doublings=(100_000, 200_000, 400_000, 800_000, 1_600_000, 2_000_000),
    memory=(2**21, 2**22, 2**23),
    seconds=1.0,
)
QUICK = Plan(
    shapes=SHAPES[:2],
    sweep=(100, 1_000, 10_000, 100_000),
    doublings=(100_000, 400_000),
    memory=(2**21,),
    seconds=0.3,
)
