from __future__ import annotations

from torch import Tensor

from softorder.nn._tempered import Tempered
from softorder.ops import soft_rank


class SoftRank(Tempered):
    """`so.soft_rank` as a layer.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftRank(temperature=0.1)
    >>> layer
    SoftRank(method='laplace', temperature=0.1, dim=-1, descending=False)
    >>> layer(torch.tensor([3.0, 1.0, 2.0]))
    tensor([3.0000, 1.0000, 2.0000])
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
        super().__init__("soft_rank", method, temperature, learnable_temperature)
        self.dim = dim
        self.descending = descending

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return soft_rank(
            scores,
            method=self.method,
            temperature=self.temperature,
            dim=self.dim,
            descending=self.descending,
            mask=mask,
        )

    def extra_repr(self) -> str:
        return self.describe("method", "temperature", "dim", "descending")
