from __future__ import annotations

from torch import Tensor

from softorder.nn._tempered import Tempered
from softorder.ops import soft_sort


class SoftSort(Tempered):
    """`so.soft_sort` as a layer.

    >>> import torch, softorder as so
    >>> so.nn.SoftSort(temperature=0.01, descending=True)(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3., 2., 1.])
    """

    def __init__(
        self,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int = -1,
        descending: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_sort", method, temperature, learnable_temperature)
        self.dim = dim
        self.descending = descending

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return soft_sort(
            scores,
            method=self.method,
            temperature=self.temperature,
            dim=self.dim,
            descending=self.descending,
            mask=mask,
        )

    def extra_repr(self) -> str:
        return self.describe("method", "temperature", "dim", "descending")
