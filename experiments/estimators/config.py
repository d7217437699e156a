"""What is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    n: int  #: small: the true gradient is a sum over all subsets
    k: int
    draws: int  #: an estimate is the mean over so many
    repetitions: int  #: estimates, of which bias and deviation are taken
    seeds: int


PRESETS = {
    "quick": Config(n=10, k=3, draws=4, repetitions=10_000, seeds=5),
    "paper": Config(n=10, k=3, draws=4, repetitions=50_000, seeds=5),
}
