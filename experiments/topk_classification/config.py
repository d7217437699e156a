"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.topk_classification.candidates import (
    METHODS,
    MIXED,
    TEMPERATURES,
    Protocol,
)


@dataclass(frozen=True)
class Config:
    data: str
    seeds: int
    small: bool = False  #: a part of the data, a smaller network, few epochs
    methods: tuple[str, ...] = METHODS
    mixed: tuple[str, ...] = MIXED  #: keys of P_K, besides a single k
    temperatures: tuple[float, ...] = TEMPERATURES  #: that every loss may choose from, or beyond
    m: int | None = None  #: classes that compete in a method that is not a density
    top1: str = "softmax"

    @property
    def protocol(self) -> Protocol:
        return Protocol(self.m, self.top1)


_TWO = ("1 and 5", "1 to 5")
_ONE = _TWO[:1]
_FEW = ("softmax", "smooth top-k", "laplace", "logistic", "sinkhorn_sort", "network")
_CLOSE = ("softmax", "laplace", "cauchy", "sinkhorn_sort", "network", "softsort")
_PAPERS = (
    "softmax",
    "smooth top-k",
    "laplace",
    "sinkhorn_sort",
    "network",
    "softsort",
    "neuralsort",
)
PRESETS = {
    "quick": Config("digits", seeds=5),
    "cities": Config("cities", seeds=5, mixed=_TWO, m=16),
    "glyphs": Config(
        "glyphs", seeds=5, methods=_FEW, mixed=_ONE, temperatures=(0.3, 1.0, 3.0, 10.0), m=16
    ),
    "kanji": Config(
        "kanji", seeds=5, methods=_FEW, mixed=_ONE, temperatures=(1.0, 3.0, 10.0, 30.0), m=16
    ),
    # The last layer of a network that softmax has trained: equation 2, as the paper fine-tunes.
    "kanji-tuned": Config(
        "kanji_features",
        seeds=5,
        methods=_CLOSE,
        mixed=_ONE,
        temperatures=(0.3, 1.0, 3.0),
        m=16,
        top1="operator",
    ),
    "cifar10-small": Config(
        "cifar10",
        seeds=5,
        small=True,
        methods=("softmax", "laplace", "sinkhorn_sort"),
        mixed=_ONE,
        temperatures=(0.3, 1.0, 3.0),
    ),
    "cifar10": Config(
        "cifar10", seeds=1, methods=("softmax", "smooth top-k", "laplace"), mixed=_TWO
    ),
    # ResNet18 from scratch for 200 epochs, batches of 100, Adam.
    "paper": Config("cifar100", seeds=2),
    # The last layer on features of ResNeXt-101, batches of 500, Adam.
    "imagenet": Config("imagenet", seeds=10, methods=_PAPERS, m=16, top1="operator"),
    "imagenet21k": Config("imagenet21k", seeds=2, methods=_PAPERS, m=50, top1="operator"),
}
