"""Numbers for every image, the loss of an order, and the order that was found."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from experiments.bfloat16 import Bfloat16
from experiments.large_mnist_sort.config import Config


class Scorer(nn.Module):
    """Two convolutions and two linear layers: an image to a score, or to several."""

    def __init__(self, config: Config, height: int, width: int, outputs: int = 1) -> None:
        """Height and width are those of an image with all its digits."""
        super().__init__()
        first, second = config.channels
        seen: nn.Module = nn.Sequential(
            nn.Conv2d(1, first, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(first, second, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.seen = Bfloat16(seen) if config.bfloat16 else seen
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(second * (height // 4) * (width // 4), config.hidden),
            nn.ReLU(),
            nn.Linear(config.hidden, outputs),
        )

    def forward(self, images: Tensor) -> Tensor:
        """(N, 1, height, width) to (N, outputs)."""
        return self.layers(self.seen(images).contiguous())


@torch.no_grad()
def hits(found: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Of each list of places: is the whole order right, and what part of the places is."""
    right = found == target
    return right.all(-1).double(), right.double().mean(-1)
