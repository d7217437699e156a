"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

ARMS = ("πST", "πST2", "SIMPLE", "Gumbel-σk", "score function")


@dataclass(frozen=True)
class Config:
    n: int
    k: int
    problems: int  #: solved side by side
    samples: int  #: of each, in a step
    steps: int
    learning_rate: float
    seeds: int
    near: float = 0.45  #: c, of k of the dimensions; 1 - near of the others
    every: int = 10  #: steps between points of the curve
    arms: tuple[str, ...] = ARMS


PRESETS = {
    "quick": Config(n=100, k=50, problems=8, samples=64, steps=800, learning_rate=0.05, seeds=5),
    # The optimiser, its learning rate and the number of steps are not stated in the paper.
    "paper": Config(
        n=100, k=50, problems=128, samples=256, steps=5_000, learning_rate=0.01, seeds=5, every=50
    ),
}
