from __future__ import annotations

from torch import Tensor

from softorder import _check
from softorder.nn._tempered import Tempered
from softorder.ops import soft_permutation


class SoftPermutation(Tempered):
    """`so.soft_permutation` as a layer.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftPermutation(k=2, temperature=0.01, descending=True)
    >>> layer(torch.tensor([3.0, 1.0, 2.0])).numpy().round(3)
    array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    def __init__(
        self,
        *,
        k: int | None = None,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int = -1,
        descending: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_permutation", method, temperature, learnable_temperature)
        _check.whole_k(k)
        self.k = k
        self.dim = dim
        self.descending = descending

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return soft_permutation(
            scores,
            k=self.k,
            method=self.method,
            temperature=self.temperature,
            dim=self.dim,
            descending=self.descending,
            mask=mask,
        )

    def extra_repr(self) -> str:
        return self.describe("k", "method", "temperature", "dim", "descending")
