"""What is run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

METHODS = (
    "SIMPLE",
    "πST",
    "πST2",
    "Gumbel-σk",
    "Gumbel-σk, laplace",
    "Xie & Ermon",
    "πST, laplace",
)


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


#: of feature_selection and learn_k alike
TRAINING: dict[str, dict[str, Any]] = {
    "quick": {
        "training": 8_000,
        "test": 5_000,
        "epochs": 5,
        "batch": 128,
        "learning_rate": 3e-3,
        "gate_rate": 0.1,
        "hidden": (256, 128),
    },
    # Optimiser, learning rate, network and temperature of the paper; it states neither the number
    # of epochs nor the batch.
    "paper": {
        "training": None,
        "test": None,
        "epochs": 100,
        "batch": 128,
        "learning_rate": 1e-3,
        "gate_rate": 1e-3,
        "hidden": (512, 256),
    },
}

PRESETS = {
    "quick": Config(**TRAINING["quick"], seeds=2, methods=METHODS[:6]),
    "paper": Config(**TRAINING["paper"], seeds=5),
}
