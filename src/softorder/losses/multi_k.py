"""The loss of a sparse autoencoder at several k at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from softorder import _check
from softorder.nn._tempered import Tempered
from softorder.nn.functional.activations import batch_topk_activation, topk_activation


class MultiKLoss(Tempered):
    """How well codes with k_1, k_2, ... features rebuild their input, by one decoder:

        L = Σ_j w_j mean((decode(y_j) - target)²) / Σ_j w_j      y_j = topk_activation(x, k_j)

    An autoencoder that is trained with one k is bad at every other; with (k, 4k) it may be used
    with any between, and features that the smaller k leaves out are taught by the larger one.

    Args:
        ks: the numbers of features.
        weights: as many numbers > 0; if None, 1 for the first and 1/8 for the others.
        batch: each k is that of the whole batch on average, as in `so.nn.BatchTopK`.
        method: as in `so.soft_topk`.
        temperature: as in `so.soft_topk`.
        hard: as in `so.nn.TopKActivation`.
        learnable_temperature: as in `so.nn.SoftTopK`.

    Paper: Scaling and evaluating sparse autoencoders (Gao et al. 2024), Multi-TopK.

    >>> import torch, softorder as so
    >>> _ = torch.manual_seed(0)
    >>> encode, decode = torch.nn.Linear(4, 16), torch.nn.Linear(16, 4)
    >>> x = torch.randn(5, 4)
    >>> criterion = so.losses.MultiKLoss((2, 8), temperature=0.1)
    >>> criterion(decode, encode(x), x).shape
    torch.Size([])
    """

    def __init__(
        self,
        ks: Sequence[int],
        weights: Sequence[float] | None = None,
        *,
        batch: bool = False,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        hard: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_topk", method, temperature, learnable_temperature)
        self.ks = tuple(ks)
        self.weights = (1.0, *[0.125] * (len(self.ks) - 1)) if weights is None else tuple(weights)
        _check.layers.ks(self.ks, self.weights)
        _check.flag("batch", batch)
        _check.flag("hard", hard)
        self.batch = batch
        self.hard = hard

    def forward(self, decode: Callable[[Tensor], Tensor], x: Tensor, target: Tensor) -> Tensor:
        """Of activations x (..., n) before any choice, and what the decoder should make of them."""
        activation = batch_topk_activation if self.batch else topk_activation
        options: dict[str, Any] = {
            "method": self.method,
            "temperature": self.temperature,
            "hard": self.hard,
        }
        losses = [F.mse_loss(decode(activation(x, k, **options)), target) for k in self.ks]
        total = sum(w * loss for w, loss in zip(self.weights, losses, strict=True))
        assert isinstance(total, Tensor)
        return total / sum(self.weights)

    def extra_repr(self) -> str:
        names = "ks", "weights", "method", "temperature"
        return self.describe(*names, batch=self.batch, hard=self.hard)
