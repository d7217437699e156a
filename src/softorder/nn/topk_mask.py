from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.nn._choices import best
from softorder.nn._tempered import Tempered
from softorder.ops import soft_topk
from softorder.ops._straight import with_value


class TopKMask(Tempered):
    """Keeps k of n weights: a parametrisation that prunes while the network learns.

    The weight that the layer uses is

        W ⊙ p      p = so.soft_topk(|W|/m, k)      m the mean of |W|, a constant

    in training, and W with all but its k largest entries set to 0 in eval mode. With upstream V,
    d and q of `so.soft_topk` and w = W ⊙ V,

        ∂L/∂W = p ⊙ V + sign(W) ⊙ d ⊙ (w - <q,w>)/m

    so a small weight whose growth would lower the loss comes back, which after magnitude pruning
    it cannot. Dividing by m makes the temperature independent of the size of the weights. Start
    warm, with p near k/n for all, and cool down.

    Args:
        k: how many of all weights, or of every group; an int.
        group: k of every `group` consecutive weights along the last axis, as hardware for N:M
            sparsity wants it; None for all weights together.
        keep: the share that is kept of all, in (0, 1), instead of k.
        method: as in `so.soft_topk`.
        temperature: as in `so.soft_topk`, in units of the mean of |W|.
        hard: exactly k in training, too, with the derivative of p (straight-through).
        hard_inference: exactly k in eval mode.
        learnable_temperature: as in `so.nn.SoftTopK`.

    >>> import torch, softorder as so
    >>> from torch.nn.utils import parametrize
    >>> layer = torch.nn.Linear(8, 4)
    >>> _ = parametrize.register_parametrization(layer, "weight", so.nn.TopKMask(2, group=4))
    >>> (layer.eval().weight != 0).view(4, 2, 4).sum(-1).unique()
    tensor([2])
    """

    numbers = ("k", "keep", *Tempered.numbers)

    def __init__(
        self,
        k: int | None = None,
        *,
        group: int | None = None,
        keep: float | None = None,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        hard: bool = False,
        hard_inference: bool = True,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_topk", method, temperature, learnable_temperature)
        _check.layers.kept(k, group, keep)
        _check.flag("hard", hard)
        _check.flag("hard_inference", hard_inference)
        self.k = k
        self.group = group
        self.keep = keep
        self.hard = hard
        self.hard_inference = hard_inference

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.mask(weight)

    def right_inverse(self, weight: Tensor) -> Tensor:
        """What is assigned to the layer's weight is kept in full, and masked when it is used."""
        return weight

    def mask(self, weight: Tensor) -> Tensor:
        """p, or exactly k ones, with the shape of the weight."""
        k = self._places(weight)
        _check.layers.weights(weight, k, self.group)
        rows = (-1,) if self.group is None else (-1, self.group)
        size = weight.abs().reshape(rows)
        if self.hard_inference and not self.training:
            return best(size, k).view_as(weight)
        unit = size.detach().mean().clamp(min=torch.finfo(size.dtype).tiny)
        options: dict[str, Any] = {"method": self.method, "temperature": self.temperature}
        p = soft_topk(size / unit, k, **options)
        return (with_value(best(size, k), p) if self.hard else p).view_as(weight)

    def _places(self, weight: Tensor) -> int:
        if self.keep is None:
            assert self.k is not None
            return self.k
        return max(1, round(self.keep * weight.numel()))

    def extra_repr(self) -> str:
        switches = {"hard": self.hard, "hard_inference": self.hard_inference}
        return self.describe("k", "group", "keep", "method", "temperature", **switches)
