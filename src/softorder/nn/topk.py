from __future__ import annotations

import torch
from torch import Tensor, nn

from softorder import _check
from softorder.ops import log_soft_topk, soft_topk
from softorder.ops._method import method_of


class SoftTopK(nn.Module):
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
        super().__init__()
        _check.k_alone(k)
        _check.temperature_alone(temperature)
        method_of("soft_topk", method)
        self.k = k
        self.method = method
        self.dim = dim
        self.largest = largest
        self.log = log
        self.log_temperature: nn.Parameter | None = None
        self._temperature = temperature
        if learnable_temperature:
            start = torch.as_tensor(temperature, dtype=torch.get_default_dtype())
            self.log_temperature = nn.Parameter(torch.log(start))

    @property
    def temperature(self) -> float | Tensor:
        """The temperature now."""
        return self._temperature if self.log_temperature is None else self.log_temperature.exp()

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
        temperature = self.temperature
        if isinstance(temperature, Tensor):
            temperature = temperature.detach()
            temperature = round(temperature.item(), 6) if temperature.numel() == 1 else temperature
        parts = [
            f"k={self.k}",
            f"method={self.method!r}",
            f"temperature={temperature}",
            f"dim={self.dim}",
            f"largest={self.largest}",
        ]
        learnable = self.log_temperature is not None
        options = {"learnable_temperature": learnable, "log": self.log}
        return ", ".join(parts + [f"{name}=True" for name, on in options.items() if on])
