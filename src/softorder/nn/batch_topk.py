from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.nn._choices import edge
from softorder.nn._tempered import Tempered
from softorder.nn.feature_use import FeatureUse
from softorder.nn.functional.activations import batch_topk_activation
from softorder.ops import soft_quantile


class BatchTopK(Tempered):
    """Lets k of n features through on average: the rows of a batch share k·B places.

    In training y = max(x, 0) ⊙ F((x - b)/τ) where one b solves

        Σ F((x - b)/τ) = k B        over all features of all B rows.

    In eval mode rows do not see each other: y = max(x, 0) ⊙ [x > θ], where the buffer `threshold`,
    θ, is the running average over the batches of training of the same equation's root at τ → 0.
    `batch_threshold(x)` is b itself with its derivatives, ∂b/∂x_i = q_i (the q of `so.soft_topk`),
    for a loss that wants to hold the threshold somewhere.

    `use` counts which features are among the k·B largest (`so.nn.FeatureUse`), in training.

    Args:
        features: n, on the last axis.
        k: how many on average, an int.
        method: a density, as in `so.soft_quantile`.
        temperature: as in `so.soft_topk`, one for the whole batch.
        momentum: the part of a new batch in the running threshold; the first one counts in full.
        hard: exactly k·B in training, with the derivative of the soft top-k (straight-through).
        learnable_temperature: as in `so.nn.SoftTopK`.

    Paper: BatchTopK (Bussmann et al. 2024), whose gradient is that of the chosen features alone.

    >>> import torch, softorder as so
    >>> layer = so.nn.BatchTopK(3, k=2, temperature=0.1)
    >>> x = torch.tensor([[3.0, 2.0, 1.5], [1.0, 0.2, 0.1]])
    >>> _ = layer(x)
    >>> layer.threshold  # above it are k·B = 4 features
    tensor(0.6000)
    >>> layer.eval()(x)
    tensor([[3.0000, 2.0000, 1.5000],
            [1.0000, 0.0000, 0.0000]])
    """

    numbers = ("k", "momentum", *Tempered.numbers)
    threshold: Tensor
    batches: Tensor

    def __init__(
        self,
        features: int,
        k: int,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        momentum: float = 0.05,
        hard: bool = False,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_quantile", method, temperature, learnable_temperature)
        _check.count("features", features, least=1)
        _check.count("k", k, least=1, most=features)
        _check.share("momentum", momentum)
        _check.flag("hard", hard)
        self.features = features
        self.k = k
        self.momentum = momentum
        self.hard = hard
        self.use = FeatureUse(features)
        self.register_buffer("threshold", torch.zeros(()))
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        _check.layers.last_axis("x", x, self.features)
        if not self.training:
            return x.relu() * (x > self.threshold)
        if x.numel():
            self._remember(x.detach())
        return batch_topk_activation(
            x, self.k, method=self.method, temperature=self.temperature, hard=self.hard
        )

    @torch.no_grad()
    def _remember(self, x: Tensor) -> None:
        level = edge(x, self.k * (x.numel() // self.features)).to(self.threshold.dtype)
        running = self.threshold.lerp(level, self.momentum)
        self.threshold.copy_(torch.where(self.batches == 0, level, running))
        self.batches.add_(1)
        self.use(x * (x > level))

    def batch_threshold(self, x: Tensor) -> Tensor:
        """b of this batch, differentiable in x and in a temperature that is learned."""
        _check.layers.last_axis("x", x, self.features)
        options: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        return soft_quantile(x, 1 - self.k / self.features, dim=None, **options)

    def extra_repr(self) -> str:
        return self.describe("features", "k", "method", "temperature", "momentum", hard=self.hard)
