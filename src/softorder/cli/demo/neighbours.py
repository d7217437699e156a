"""The task: let the nearest templates vote, and train the features through the vote.

`so.nn.SoftKNN` does both. Its loss is the share of the soft neighbours that are of another class
than the query; its prediction takes the hard neighbours, the k-nearest-neighbours vote as usual.
"""

from __future__ import annotations

from torch import Tensor, nn

from softorder.cli.demo.digits import CLASSES, Digits
from softorder.nn import SoftKNN

K = 10
QUERIES = 100  # of every batch; the others are the templates
SOFTNESS = 0.3  # the share of the weights that is not on the k nearest, before training


def network() -> nn.Sequential:
    """From 64 pixels to 32 features."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))


def voters(body: nn.Module, digits: Digits) -> SoftKNN:
    """The training images, ready to classify others by the features of the body."""
    return _knn(body).remember(digits.images, digits.labels)


def neighbour_accuracy(body: nn.Module, digits: Digits) -> float:
    """Of the nearest neighbours in feature space."""
    return accuracy(voters(body, digits).predict(digits.test_images), digits.test_labels)


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    return (predicted == labels).float().mean().item()


def _knn(body: nn.Module, method: str = "laplace") -> SoftKNN:
    return SoftKNN(body, K, method=method, distance="squared")


class SoftNeighbours(nn.Module):
    """A loss: the first images of a batch are queries, and the others vote on them."""

    def __init__(self, body: nn.Module, method: str, digits: Digits) -> None:
        super().__init__()
        self.knn = _knn(body, method)
        queries, templates = digits.images[:QUERIES], digits.images[QUERIES:]
        self.temperature = self.knn.calibrate(queries, templates, softness=SOFTNESS)

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return self.knn(images[:QUERIES], labels[:QUERIES], images[QUERIES:], labels[QUERIES:])


class CrossEntropy(nn.Module):
    """The usual loss: a linear layer on the features, and cross-entropy."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.classifier = nn.Sequential(body, nn.Linear(32, CLASSES))

    def forward(self, images: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.classifier(images), labels)
