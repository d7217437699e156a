"""What is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    n: int
    repetitions: int  #: of each search; the fastest is its time
    seeds: int  #: each with other scores


PRESETS = {
    "quick": Config(n=10_000, repetitions=3, seeds=5),
    # Figure 8: a hundred rows of a million scores, a few gigabytes.
    "million": Config(n=1_000_000, repetitions=1, seeds=1),
    "paper": Config(n=10_000, repetitions=10, seeds=100),
}
