from __future__ import annotations

from torch import Tensor

from softorder import _axis, _check
from softorder.nn._choices import best
from softorder.nn._tempered import Tempered
from softorder.nn.functional.activations import topk_activation


class TopKActivation(Tempered):
    """Lets k of n features through: the activation of a sparse autoencoder.

    In training y = max(x, 0) ⊙ p with p = `so.soft_topk(x, k)`, whose gradient reaches the features
    that are not chosen (`so.nn.functional.topk_activation` has the formula); cool the temperature
    down and y becomes what eval mode gives: the k largest, rectified, and exact zeros.

    Args:
        k: how many, an int.
        method: as in `so.soft_topk`.
        temperature: as in `so.soft_topk`.
        dim: the axis of the features; several of them, or None for all, are taken as one.
        hard: exactly k in training, too, with the derivative of the soft top-k (straight-through).
        hard_inference: exactly k in eval mode.
        learnable_temperature: as in `so.nn.SoftTopK`.

    >>> import torch, softorder as so
    >>> layer = so.nn.TopKActivation(2, temperature=0.2)
    >>> x = torch.tensor([2.0, -1.0, 0.5, 1.0])
    >>> layer(x).numpy().round(3), layer.eval()(x)
    (array([1.998, 0.   , 0.072, 0.857], dtype=float32), tensor([2., 0., 0., 1.]))
    """

    numbers = ("k", *Tempered.numbers)

    def __init__(
        self,
        k: int,
        *,
        method: str | object = "laplace",
        temperature: float | Tensor = 1.0,
        dim: int | tuple[int, ...] | None = -1,
        hard: bool = False,
        hard_inference: bool = True,
        learnable_temperature: bool = False,
    ) -> None:
        super().__init__("soft_topk", method, temperature, learnable_temperature)
        _check.count("k", k, least=1)
        _check.flag("hard", hard)
        _check.flag("hard_inference", hard_inference)
        self.k = k
        self.dim = dim
        self.hard = hard
        self.hard_inference = hard_inference

    def forward(self, x: Tensor) -> Tensor:
        if self.hard_inference and not self.training:
            _check.floating("scores", x)
            axes = _axis.axes(x, self.dim)
            features = _axis.join(x, axes)
            _check.scores(features, -1)
            _check.count("k", self.k, least=1, most=features.shape[-1])
            return x.relu() * _axis.split(best(features, self.k), x, axes)
        return topk_activation(
            x,
            self.k,
            method=self.method,
            temperature=self.temperature,
            dim=self.dim,
            hard=self.hard,
        )

    def extra_repr(self) -> str:
        switches = {"hard": self.hard, "hard_inference": self.hard_inference}
        return self.describe("k", "method", "temperature", "dim", **switches)
