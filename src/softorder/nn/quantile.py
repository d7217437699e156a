from __future__ import annotations

from torch import Tensor

from softorder import _check
from softorder.nn._tempered import Tempered
from softorder.ops import soft_quantile


class SoftQuantile(Tempered):
    """`so.soft_quantile` as a layer.

    >>> import torch, softorder as so
    >>> so.nn.SoftQuantile(0.5, temperature=0.01)(torch.tensor([3.0, 1.0, 2.0]))
    tensor(2.)
    """

    def __init__(
        self,
        q: float | Tensor,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int = -1,
        keepdim: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_quantile", method, temperature, learnable_temperature)
        _check.q_alone(q)
        self.q = q
        self.dim = dim
        self.keepdim = keepdim

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        return soft_quantile(
            scores,
            self.q,
            method=self.method,
            temperature=self.temperature,
            dim=self.dim,
            keepdim=self.keepdim,
            mask=mask,
        )

    def extra_repr(self) -> str:
        return self.describe("q", "method", "temperature", "dim", "keepdim")
