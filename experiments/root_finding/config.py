"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.root_finding import finders


@dataclass(frozen=True)
class Config:
    n: int
    repetitions: int  #: of each search; the fastest is its time
    seeds: int  #: each with other scores
    beyond: tuple[float, ...] = (finders.BEYOND,)  #: max |x|, where the search begins
    methods: tuple[str, ...] = (*finders.METHODS, "softorder")


PRESETS = {
    "quick": Config(n=10_000, repetitions=3, seeds=5),
    # What the first interval has to do with it.
    "interval": Config(
        n=10_000, repetitions=1, seeds=10, beyond=(5.0, 10.0, 18.0, 36.7), methods=finders.METHODS
    ),
    # Figure 8: a hundred rows of a million scores, a few gigabytes.
    "million": Config(n=1_000_000, repetitions=1, seeds=1),
    "paper": Config(n=10_000, repetitions=10, seeds=100),
}
