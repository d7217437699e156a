from __future__ import annotations

from torch import Tensor

from softorder import _check
from softorder.nn._tempered import Tempered
from softorder.ops import log_soft_topk, soft_topk


class SoftTopK(Tempered):
    """`so.soft_topk`, or `so.log_soft_topk` with log=True, as a layer.

    A learnable temperature is stored as its logarithm, the parameter `log_temperature`, so that no
    step of an optimiser can make it negative.

    >>> import torch, softorder as so
    >>> layer = so.nn.SoftTopK(2, temperature=0.5, learnable_temperature=True)
    >>> layer
    SoftTopK(k=2, method='laplace', temperature=0.5, ...)
    >>> layer(torch.tensor([3.0, 1.0, 2.0])).sum()
    tensor(2., grad_fn=<SumBackward0>)
    """

    def __init__(
        self,
        k: float | Tensor,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int = -1,
        largest: bool = True,
        learnable_temperature: bool = False,
        log: bool = False,
    ) -> None:
        super().__init__("soft_topk", method, temperature, learnable_temperature)
        _check.k_alone(k)
        self.k = k
        self.dim = dim
        self.largest = largest
        self.log = log

    def forward(self, scores: Tensor, mask: Tensor | None = None) -> Tensor:
        operator = log_soft_topk if self.log else soft_topk
        return operator(
            scores,
            self.k,
            method=self.method,
            temperature=self.temperature,
            dim=self.dim,
            largest=self.largest,
            mask=mask,
        )

    def extra_repr(self) -> str:
        return self.describe("k", "method", "temperature", "dim", "largest", log=self.log)
