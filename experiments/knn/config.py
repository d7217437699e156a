"""What is run: data, network, training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

METHODS = (
    "laplace",
    "logistic",
    "normal",
    "cauchy",
    "uniform",
    "neuralsort",
    "softsort",
    "sequential_softmax",
)
BASELINES = ("kNN on pixels", "cross-entropy", "kNN on cross-entropy features")


@dataclass(frozen=True)
class Config:
    data: str
    k: int
    training: int  #: items, of those that there are
    network: str  #: of NETWORKS
    steps: int
    queries: int  #: in a batch
    templates: int  #: in a batch, besides the queries
    optimiser: str
    learning_rate: float
    softness: float  #: at the start, of every method
    seeds: int
    methods: tuple[str, ...] = METHODS
    losses: tuple[str, ...] = ("share", "log_share")
    weight_decay: float = 0.0
    width: int = 64  #: of a ResNet18


PAPER: dict[str, Any] = {
    "k": 9,
    "queries": 100,
    "templates": 100,
    "optimiser": "sgd",
    "learning_rate": 1e-3,
    "weight_decay": 5e-4,
    "softness": 0.3,
    "seeds": 3,
}

PRESETS = {
    # 500 training items, so that how the features are learned makes a difference.
    "quick": Config(
        data="digits",
        k=9,
        training=500,
        network="mlp",
        steps=300,
        queries=100,
        templates=100,
        optimiser="adam",
        learning_rate=2e-3,
        softness=0.3,
        seeds=5,
    ),
    # All of MNIST and the paper's network, but Adam and 2,000 steps: minutes a trial.
    "mnist": Config(
        data="mnist",
        k=9,
        training=60_000,
        network="convolutional",
        steps=2_000,
        queries=100,
        templates=100,
        optimiser="adam",
        learning_rate=1e-3,
        softness=0.3,
        seeds=3,
        losses=("share",),
    ),
    # A ResNet18 of an eighth of its width, and few steps.
    "cifar10-small": Config(
        data="cifar10",
        k=9,
        training=50_000,
        network="resnet18",
        width=8,
        steps=1_000,
        queries=100,
        templates=100,
        optimiser="adam",
        learning_rate=2e-3,
        softness=0.3,
        seeds=1,
        methods=("laplace", "logistic"),
        losses=("share",),
    ),
    # Batches, optimiser and networks of the papers (tables 3 and 6), 200 epochs. Days on a CPU.
    "paper": Config(**PAPER, data="mnist", training=60_000, network="convolutional", steps=120_000),
    "cifar10": Config(**PAPER, data="cifar10", training=50_000, network="resnet18", steps=100_000),
}
