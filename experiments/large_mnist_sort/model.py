"""A number for every image, and the loss of an order."""

from __future__ import annotations

import torch
from torch import Tensor, nn

import softorder as so
from experiments.large_mnist_sort.config import Config

_SMALLEST = 1e-20  #: of an entry of a row-stochastic matrix, which may underflow to 0


class Scorer(nn.Module):
    """Two convolutions and two linear layers: an image to a score."""

    def __init__(self, config: Config, height: int = 28, width: int = 28) -> None:
        super().__init__()
        first, second = config.channels
        height, width = height // config.shrink // 4, config.digits * width // config.shrink // 4
        self.layers = nn.Sequential(
            nn.Conv2d(1, first, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(second * height * width, config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, 1),
        )

    def forward(self, lists: Tensor) -> Tensor:
        """(lists, n, 1, height, width) to (lists, n)."""
        return self.layers(lists.flatten(0, 1)).view(lists.shape[:2])


class RowCrossEntropy(nn.Module):
    """-log P[place_i, i] for methods that give the matrix P only, as a whole."""

    def __init__(self, method: str, temperature: float) -> None:
        super().__init__()
        self.layer = so.nn.SoftPermutation(
            method=method, temperature=temperature, learnable_temperature=True
        )

    @property
    def temperature(self) -> Tensor | float:
        return self.layer.temperature

    def forward(self, scores: Tensor, target: Tensor) -> Tensor:
        entries = self.layer(scores).gather(-2, target.unsqueeze(-2)).squeeze(-2)
        return -entries.clamp_min(_SMALLEST).log().mean()


def criterion(method: str, temperature: float) -> nn.Module:
    served = {row.name for row in so.methods() if row.operator == "permutation_cross_entropy"}
    if method not in served:
        return RowCrossEntropy(method, temperature)
    return so.losses.PermutationCrossEntropyLoss(
        method=method, temperature=temperature, learnable_temperature=True
    )


@torch.no_grad()
def hits(scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Of each list: is the whole order right, and what part of the places is."""
    right = scores.argsort(-1).argsort(-1) == target
    return right.all(-1).double(), right.double().mean(-1)
