"""What is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

METHODS = (
    "πST",
    "πST2",
    "Gumbel-σk",
    "NCPSS",
    "SIMPLE",
    "Gumbel-σk, laplace",
    "πST, laplace",
    "Xie & Ermon",
)
OF_THE_PAPER = (*METHODS[:5], METHODS[-1])
WHOLE = "all pixels"  #: nothing is chosen
FAST = METHODS[:5]  #: the paper's, but for Xie & Ermon, whose k softmaxes take 20 times the time


@dataclass(frozen=True)
class Training:
    """How a network and its gate are trained."""

    training: int | None  #: images; None for all
    test: int | None
    epochs: int
    batch: int
    learning_rate: float
    gate_rate: float  #: learning rate of the logits of the pixels
    hidden: tuple[int, ...]
    seeds: int


@dataclass(frozen=True)
class Config(Training):
    data: tuple[str, ...] = ("mnist", "fashion")  #: data sets, each with all methods
    k: int = 50
    methods: tuple[str, ...] = METHODS


# Optimiser, learning rate, network and temperature of the paper; it states neither the number of
# epochs nor the batch.
_PAPER: dict[str, Any] = {
    "training": None,
    "test": None,
    "epochs": 100,
    "batch": 128,
    "learning_rate": 1e-3,
    "gate_rate": 1e-3,
    "hidden": (512, 256),
}

#: of feature_selection and learn_k alike
TRAINING: dict[str, dict[str, Any]] = {
    "quick": {**_PAPER, "epochs": 3, "gate_rate": 1e-2},
    # With the paper's rate for the gate it takes ten times the epochs to come as far.
    "medium": {**_PAPER, "epochs": 12, "gate_rate": 1e-2},
    # A smaller setting than quick, for many seeds.
    "seeds": {
        "training": 12_800,
        "test": 2_000,
        "epochs": 4,
        "batch": 64,
        "learning_rate": 1e-3,
        "gate_rate": 2e-2,
        "hidden": (256, 128),
    },
    # Until the test loss does not fall any more.
    "long": {**_PAPER, "epochs": 40, "gate_rate": 1e-2},
    "paper": _PAPER,
}

PRESETS = {
    "quick": Config(**TRAINING["quick"], seeds=2, methods=FAST),
    # Fewer images than learn_k's: a step of Xie & Ermon is long.
    "seeds": Config(
        **TRAINING["seeds"] | {"training": 4_800, "epochs": 3}, seeds=5, methods=OF_THE_PAPER
    ),
    "medium": Config(**TRAINING["medium"], seeds=3, methods=FAST),
    "long": Config(**TRAINING["long"], seeds=1, methods=FAST[1:3], data=("mnist",)),
    # What the network of medium comes to at best.
    "whole": Config(**TRAINING["medium"], seeds=2, methods=(WHOLE,)),
    "paper": Config(**TRAINING["paper"], seeds=5),
}
