"""From images to features: networks without their last layer."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from experiments.bfloat16 import Bfloat16
from experiments.knn.config import Config
from experiments.topk_classification.compact import compact
from experiments.topk_classification.resnet import resnet18

CLASSES = 10


def mlp(_: Config) -> nn.Sequential:
    """Two layers, for images of 8×8."""
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))


def convolutional(_: Config) -> nn.Sequential:
    """Two convolutions, for images of 28×28."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(50 * 16, 128),
    )


def residual(config: Config) -> nn.Sequential:
    """ResNet18, for images of 3×32×32."""
    return resnet18(CLASSES, config.width)[:-1]


#: each with the number of its features
NETWORKS: dict[str, tuple[Callable[[Config], nn.Sequential], Callable[[Config], int]]] = {
    "mlp": (mlp, lambda config: 32),
    "convolutional": (convolutional, lambda config: 128),
    "compact": (lambda config: compact(config.width), lambda config: 4 * config.width),
    "resnet18": (residual, lambda config: 8 * config.width),
}


def build(config: Config, device: str) -> tuple[nn.Module, int]:
    """The network of a configuration, and the number of its features."""
    network, features = NETWORKS[config.network]
    body: nn.Module = network(config)
    if config.bfloat16:
        body = Bfloat16(body)
    return body.to(device), features(config)
