"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

GUESSES = ("zero", "quantile", "logit", "both")
ARMS = (
    "bisection",
    *(f"newton, {guess}" for guess in GUESSES),
    *(f"halley, {guess}" for guess in GUESSES),
    "so.soft_topk",
)


@dataclass(frozen=True)
class Config:
    n: int
    problems: int
    seeds: int  #: repetitions, each with other scores
    widest: float = 5.0  #: standard deviation of the scores, from 0.1 to this
    tolerance: float = 1e-8  #: of |Σ p - k|
    most: int = 100  #: iterations
    arms: tuple[str, ...] = ARMS


PRESETS = {
    "quick": Config(n=10_000, problems=100, seeds=10),
    "paper": Config(n=10_000, problems=100, seeds=100),
}
