"""What is run."""

from __future__ import annotations

from dataclasses import dataclass, replace

METHODS = ("πST", "πST2", "Gumbel-σk", "NCPSS", "SIMPLE", "Xie & Ermon")
LARGE = METHODS[:4]  #: as in the paper: the others cannot be asked for 500 of 1000


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


_SMALL, _LARGE = Code(10, 5, 10), Code(1000, 500, 1, methods=LARGE)
# Batch and number of epochs are not stated in the paper.
_PAPER = Config(
    codes=(_SMALL, _LARGE),
    training=None,
    test=None,
    epochs=200,
    batch=128,
    learning_rate=1e-4,
    hidden=(512, 256),
    seeds=5,
)

PRESETS = {
    "quick": replace(
        _PAPER,
        codes=(_SMALL, replace(_LARGE, data=("mnist",))),
        epochs=2,
        learning_rate=1e-3,
        seeds=1,
    ),
    # Fewer steps than quick, for several seeds.
    "seeds": replace(
        _PAPER,
        training=12_800,
        test=2_000,
        epochs=3,
        learning_rate=1e-3,
        seeds=5,
    ),
    "paper": _PAPER,
}
