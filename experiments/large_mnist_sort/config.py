"""What is run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

SCORES = ("laplace", "logistic", "neuralsort", "stochastic NeuralSort", "softsort", "network")
MATRICES = (
    "Vanilla",
    "Sinkhorn",
    "Gumbel-Sinkhorn",
    "Sinkhorn, as published",
)  #: that want n numbers of every image
METHODS = (*SCORES, *MATRICES)


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
    temperature: float  #: at the start
    test: int  #: lists
    seeds: int
    methods: tuple[str, ...] = METHODS
    variants: tuple[str, ...] = ()  #: of VARIANTS, each an arm of the first method
    learn_temperature: bool = True
    regroup: int = 1  #: lists that an image is in, with others each time
    bfloat16: bool = False  #: inside the convolutions
    validation: int = 200  #: lists, for the curves
    looks: int = 20  #: points of a curve


#: what may explain that quick is below the paper, one at a time, and together
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "as quick": {},
    "channels × 4": {"channels": (32, 64)},
    "steps × 5": {"steps": 5_000},
    "images per step × 4": {"images": 384},
    "every image in 8 lists": {"regroup": 8},
    "start at τ 2": {"temperature": 2.0},
    "τ stays 0.4": {"learn_temperature": False},
    "images × 4, 8 lists, steps × 5": {"images": 384, "regroup": 8, "steps": 5_000},
}


def varied(config: Config, name: str) -> Config:
    return replace(config, **VARIANTS[name])


_QUICK: dict[str, Any] = {
    "sizes": (3, 5),
    "digits": 4,
    "channels": (8, 16),
    "hidden": 64,
    "shrink": 2,
    "images": 96,
    "steps": 1_000,
    "learning_rate": 1e-2,
    "temperature": 0.4,
    "test": 1_000,
}
_OF_THE_PAPER = ("laplace", "logistic", "neuralsort", "stochastic NeuralSort", *MATRICES)

PRESETS = {
    "quick": Config(**_QUICK, seeds=3, methods=_OF_THE_PAPER),
    # Why is quick below the paper? One thing at a time is as in the paper, or nearer to it.
    "why": Config(
        **_QUICK | {"sizes": (3,), "test": 2_000},
        seeds=5,
        methods=("laplace",),
        variants=tuple(VARIANTS),
        bfloat16=True,
    ),
    # All sizes of the paper, with what helps most for its price: every image in 8 lists.
    "medium": Config(
        **_QUICK | {"sizes": (3, 5, 7, 9, 15), "steps": 1_500, "test": 2_000},
        seeds=5,
        methods=("laplace", "neuralsort"),
        regroup=8,
        bfloat16=True,
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
