"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.topk_classification.candidates import METHODS


@dataclass(frozen=True)
class Config:
    data: str
    seeds: int
    small: bool = False  #: a part of the data, few epochs
    methods: tuple[str, ...] = METHODS


PRESETS = {
    "quick": Config("digits", seeds=3),
    "cities": Config("cities", seeds=3),
    "glyphs": Config("glyphs", seeds=3),
    "cifar10": Config("cifar10", seeds=1, methods=("softmax", "smooth top-k", "laplace")),
    # ResNet18 from scratch for 200 epochs, batches of 100, Adam.
    "paper": Config("cifar100", seeds=2),
}
