from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from softorder.nn._tempered import Tempered


class Ordering(Tempered):
    """Rank, sort and permutation as layers: one constructor and one call for all of them."""

    operator: ClassVar[Callable[..., Tensor]]  #: a staticmethod
    options: ClassVar[tuple[str, ...]] = ("method", "temperature", "dim", "descending")

    def __init__(
        self,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int = -1,
        descending: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__(self.operator.__name__, method, temperature, learnable_temperature)
        self.dim = dim
        self.descending = descending

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        options = {name: getattr(self, name) for name in self.options}
        return self.operator(scores, mask=mask, **options)

    def extra_repr(self) -> str:
        return self.describe(*self.options)
