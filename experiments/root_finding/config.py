"""What is run; the rest of it is in experiments/khot/root_finding.py."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Config:
    n: int
    seeds: int  #: repetitions, each with other scores


PRESETS = {
    "quick": Config(n=10_000, seeds=10),
    "paper": Config(n=10_000, seeds=100),
}
