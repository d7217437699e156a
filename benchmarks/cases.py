"""What is measured: shapes, k and temperatures."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import torch


@dataclass(frozen=True)
class Shape:
    rows: int
    n: int

    def __str__(self) -> str:
        return f"{self.rows:,}×{self.n:,}"

    @property
    def key(self) -> str:
        """The name of the shape on the command line."""
        return f"{self.rows}x{self.n}"


@dataclass(frozen=True)
class Case:
    """One problem: `rows` standard normal rows of n scores, in float32."""

    shape: Shape
    k: int
    temperature: float

    def __str__(self) -> str:
        return f"{self.shape} k={self.k:,} τ={self.temperature:g}"

    def scores(self) -> torch.Tensor:
        return normal_scores(self.shape)


@dataclass(frozen=True)
class OrderingCase:
    """The same without a k: rows to rank or to sort."""

    shape: Shape
    temperature: float = 0.1

    def __str__(self) -> str:
        return f"{self.shape} τ={self.temperature:g}"

    def scores(self) -> torch.Tensor:
        return normal_scores(self.shape)


@dataclass(frozen=True)
class PatternCase:
    """Rows of a given pattern, which some algorithms find hard."""

    shape: Shape
    temperature: float
    pattern: str

    def __str__(self) -> str:
        return f"{self.shape} τ={self.temperature:g} {self.pattern}"

    def scores(self) -> torch.Tensor:
        n = self.shape.n
        return PATTERNS[self.pattern](n).expand(self.shape.rows, n).contiguous()


PATTERNS = {
    "decreasing": lambda n: torch.linspace(3, -3, n),
    "increasing": lambda n: torch.linspace(-3, 3, n),
    "constant": torch.zeros,
    "sawtooth": lambda n: torch.arange(n) % 1000 / 1000.0,
}


@dataclass(frozen=True)
class LossCase:
    """Logits of `rows` samples, and the class of each."""

    shape: Shape
    p_k: tuple[float, ...]
    temperature: float

    def __str__(self) -> str:
        return f"{self.shape} p_k={list(self.p_k)} τ={self.temperature:g}"

    def scores(self) -> torch.Tensor:
        return normal_scores(self.shape)

    def target(self) -> torch.Tensor:
        generator = torch.Generator().manual_seed(1)
        return torch.randint(self.shape.n, (self.shape.rows,), generator=generator)


@dataclass(frozen=True)
class RaggedCase:
    """Rows of different lengths, one behind another: many short ones, and a few very long ones.

    The lengths follow a law with the tail of ℓ^(-10/7), 100 in the mean and shape.n at the most.
    """

    shape: Shape
    operator: str
    method: str
    temperature: float = 0.1

    def __str__(self) -> str:
        return f"{self.operator} {self.method}".rstrip()

    def lengths(self) -> torch.Tensor:
        generator = torch.Generator().manual_seed(0)
        share = torch.rand(self.shape.rows, generator=generator, dtype=torch.float64)
        return (44 * (share**-0.7 - 1)).clamp(max=self.shape.n).long()

    def offsets(self) -> torch.Tensor:
        return torch.nn.functional.pad(self.lengths().cumsum(0), (1, 0))

    def scores(self) -> torch.Tensor:
        return normal_scores(Shape(1, int(self.lengths().sum()))).squeeze(0)


Problem = Case | OrderingCase | PatternCase | LossCase | RaggedCase


def normal_scores(shape: Shape) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(shape.rows, shape.n, generator=generator)


ROUTER = Shape(4096, 64)  # the gate of a mixture of experts
SHAPES = (
    ROUTER,
    Shape(128, 1_000),
    Shape(128, 10_450),
    Shape(32, 50_257),
    Shape(1, 1_000_000),
    Shape(1, 10_000_000),
)
SMALL_CALL = Case(Shape(1, 16), k=4, temperature=0.1)


@dataclass(frozen=True)
class Plan:
    """How much to measure."""

    shapes: tuple[Shape, ...]
    temperatures: tuple[float, ...]
    all_k: bool
    sweep: tuple[int, ...]  # the n of the plot
    memory: tuple[Shape, ...]
    seconds: float  # for all providers of one case together
    calls: bool = True  # the cost of a small call

    def ks(self, shape: Shape) -> tuple[int, ...]:
        return (8, shape.n // 10, shape.n // 2) if self.all_k else (shape.n // 10,)

    def cases(self, shape: Shape) -> list[Case]:
        return [Case(shape, *pair) for pair in product(self.ks(shape), self.temperatures)]

    def usual_case(self, shape: Shape) -> Case:
        return Case(shape, max(1, shape.n // 10), 0.1)

    def sweep_cases(self) -> list[Case]:
        return [self.usual_case(Shape(1, n)) for n in self.sweep]


FULL = Plan(
    shapes=SHAPES,
    temperatures=(1.0, 0.1, 0.01),
    all_k=True,
    sweep=tuple(round(10 ** (power / 2)) for power in range(4, 15)),
    memory=(Shape(1, 2**24), Shape(16, 2**20)),
    seconds=1.0,
)
QUICK = Plan(
    shapes=SHAPES[:3],
    temperatures=(0.1,),
    all_k=False,
    sweep=(100, 1_000, 10_000, 100_000),
    memory=(Shape(1, 2**24),),
    seconds=0.2,
)
