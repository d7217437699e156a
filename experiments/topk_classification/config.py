"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.topk_classification.candidates import METHODS, TEMPERATURES


@dataclass(frozen=True)
class Config:
    data: str
    seeds: int
    small: bool = False  #: a part of the data, a smaller network, few epochs
    methods: tuple[str, ...] = METHODS
    temperatures: tuple[float, ...] = TEMPERATURES  #: that every loss may choose from


_FEW = ("softmax", "smooth top-k", "laplace", "logistic", "sinkhorn", "network")
_PAPERS = ("softmax", "smooth top-k", "laplace", "sinkhorn", "network", "softsort", "neuralsort")
PRESETS = {
    "quick": Config("digits", seeds=5),
    "cities": Config("cities", seeds=3),
    "glyphs": Config("glyphs", seeds=3),
    "kanji": Config("kanji", seeds=3, methods=_FEW, temperatures=(1.0, 3.0, 10.0, 30.0)),
    "cifar10-small": Config(
        "cifar10", 1, small=True, methods=("softmax", "laplace"), temperatures=(0.3, 1.0, 3.0)
    ),
    "cifar10": Config("cifar10", seeds=1, methods=("softmax", "smooth top-k", "laplace")),
    # ResNet18 from scratch for 200 epochs, batches of 100, Adam.
    "paper": Config("cifar100", seeds=2),
    # The last layer on features of ResNeXt-101, batches of 500, Adam.
    "imagenet": Config("imagenet", seeds=10, methods=_PAPERS),
    "imagenet21k": Config("imagenet21k", seeds=2, methods=_PAPERS),
}
