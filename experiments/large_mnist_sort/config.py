"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

METHODS = ("laplace", "logistic", "neuralsort", "softsort", "network")


@dataclass(frozen=True)
class Config:
    sizes: tuple[int, ...]  #: n, how many numbers are sorted
    digits: int  #: of a number
    channels: tuple[int, int]
    hidden: int
    shrink: int  #: images are made smaller by this factor
    images: int  #: in a step; they make as many lists as they can
    steps: int
    learning_rate: float  #: the largest of one cycle
    temperature: float  #: at the start; it is learned
    test: int  #: lists
    seeds: int
    methods: tuple[str, ...] = METHODS


PRESETS = {
    "quick": Config(
        sizes=(3, 5),
        digits=4,
        channels=(8, 16),
        hidden=64,
        shrink=2,
        images=96,
        steps=1_000,
        learning_rate=1e-2,
        temperature=0.4,
        test=1_000,
        seeds=2,
        methods=("laplace", "logistic", "neuralsort"),
    ),
    # All sizes of the paper, with half the channels on images of half the size.
    "medium": Config(
        sizes=(3, 5, 7, 9, 15),
        digits=4,
        channels=(16, 32),
        hidden=64,
        shrink=2,
        images=96,
        steps=5_000,
        learning_rate=5e-3,
        temperature=0.4,
        test=2_000,
        seeds=2,
        methods=("laplace", "neuralsort"),
    ),
    # The network of Grover et al. (2019); the start of α is the paper's (figure 9). Optimiser,
    # learning rate, batch and number of steps are not stated.
    "paper": Config(
        sizes=(3, 5, 7, 9, 15),
        digits=4,
        channels=(32, 64),
        hidden=64,
        shrink=1,
        images=500,
        steps=100_000,
        learning_rate=1e-3,
        temperature=0.4,
        test=10_000,
        seeds=5,
    ),
}
