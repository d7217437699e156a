"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

METHODS = ("SIMPLE", "πST", "πST2", "Gumbel-σk", "Xie & Ermon")


@dataclass(frozen=True)
class Code:
    """`groups` k-hot vectors of n units, and the methods that can be asked for so many."""

    n: int
    k: int
    groups: int
    data: tuple[str, ...] = ("mnist", "fashion")
    methods: tuple[str, ...] = METHODS

    def __str__(self) -> str:
        return f"n = {self.n}"


@dataclass(frozen=True)
class Config:
    codes: tuple[Code, ...]
    training: int | None  #: images; None for all
    test: int | None
    epochs: int
    batch: int
    learning_rate: float
    hidden: tuple[int, int]  #: of the encoder; reversed in the decoder
    seeds: int


PRESETS = {
    "quick": Config(
        codes=(
            Code(10, 5, 10),
            Code(1000, 500, 1, data=("mnist",), methods=("πST", "πST2", "Gumbel-σk")),
        ),
        training=8_000,
        test=2_000,
        epochs=5,
        batch=128,
        learning_rate=1e-3,
        hidden=(256, 128),
        seeds=2,
    ),
    # The large code is without Xie & Ermon and SIMPLE, as in the paper.
    "paper": Config(
        codes=(Code(10, 5, 10), Code(1000, 500, 1, methods=METHODS[1:4])),
        training=None,
        test=None,
        epochs=200,
        batch=128,
        learning_rate=1e-4,
        hidden=(512, 256),
        seeds=5,
    ),
}
