"""The task: let the nearest templates vote, and train the features through the vote.

    scores   = -|feature(query) - feature(template)|²
    weights  = soft_topk(scores, k)                  the soft neighbours, k in all
    loss     = -log(share of the weights on templates of the query's class)

Prediction takes the hard neighbours, which is the k-nearest-neighbours classifier as usual.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import softorder as so
from softorder.cli.demo.digits import CLASSES, Digits
from softorder.nn.functional.neighbours import softness_to_temperature

K = 10
QUERIES = 100  # of every batch; the others are the templates
SOFTNESS = 0.3  # the share of the weights that is not on the k nearest, before training


def network() -> nn.Sequential:
    """From 64 pixels to 32 features."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))


def scores(queries: Tensor, templates: Tensor) -> Tensor:
    """Minus the squared distances."""
    return -torch.cdist(queries, templates).square()


def predict(queries: Tensor, templates: Tensor, labels: Tensor) -> Tensor:
    """The class with most of the k nearest templates."""
    votes = so.hard.topk(scores(queries, templates), K)
    return (votes @ nn.functional.one_hot(labels, CLASSES).to(votes)).argmax(-1)


@dataclass
class SoftNeighbours:
    """A loss: minus the log of the share of soft neighbours that are of the query's class."""

    method: str
    temperature: float = 0.0  # set by the first batch

    def __call__(self, features: Tensor, labels: Tensor) -> Tensor:
        table = scores(features[:QUERIES], features[QUERIES:])
        if not self.temperature:
            self.temperature = softness_to_temperature(table, K, self.method, SOFTNESS)
        weights = so.soft_topk(table, K, method=self.method, temperature=self.temperature)
        same = labels[:QUERIES, None] == labels[QUERIES:]
        share = (weights * same).sum(-1) / K
        # `uniform` has exact zeros: a query without a neighbour of its class teaches nothing yet.
        return -share.clamp_min(1e-6).log().mean()

    def parameters(self) -> list[nn.Parameter]:
        return []


class CrossEntropy:
    """The usual loss: a linear layer on the features, and cross-entropy."""

    def __init__(self) -> None:
        self.head = nn.Linear(32, CLASSES)

    def __call__(self, features: Tensor, labels: Tensor) -> Tensor:
        return nn.functional.cross_entropy(self.head(features), labels)

    def parameters(self) -> list[nn.Parameter]:
        return list(self.head.parameters())


Loss = SoftNeighbours | CrossEntropy


def accuracy(predicted: Tensor, labels: Tensor) -> float:
    return (predicted == labels).float().mean().item()


def neighbour_accuracy(body: nn.Module, digits: Digits) -> float:
    """Of the nearest neighbours in feature space."""
    with torch.no_grad():
        predicted = predict(body(digits.test_images), body(digits.images), digits.labels)
    return accuracy(predicted, digits.test_labels)
