"""The points of every curve."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from experiments.topk_classification.candidates import Candidate, Protocol
from experiments.topk_sweeps.config import Config

METHOD = "sinkhorn_sort"  #: of figure 2 of Petersen et al. (2022)
SHARE = 0.75  #: of k = 5, where m varies
SWEEPS = {
    "temperature": "temperature",
    "share": "share of k = 5",
    "m": "m, classes that compete",
}


@dataclass(frozen=True)
class Point:
    """A loss at a place x of a sweep."""

    sweep: str  #: a key of SWEEPS
    curve: str
    x: float
    candidate: Candidate

    def __str__(self) -> str:
        return f"{self.sweep} = {self.x:g}, {self.curve}"


def points(config: Config) -> Iterator[Point]:
    usual = Protocol(config.m, config.top1)
    for k in config.losses:
        for t in config.temperatures:
            yield Point("temperature", f"laplace, k = {k}", t, Candidate("laplace", k, t, usual))
    for share in config.shares:
        yield Point("share", METHOD, share, mixture(share, usual))
    for m in config.ms:
        protocol = Protocol(m, config.top1)
        yield Point("m", METHOD, m, mixture(SHARE, protocol))


def mixture(share: float, protocol: Protocol) -> Candidate:
    """So much of k = 5, and the rest of k = 1. The temperature is still to be chosen."""
    p_k = (1 - share, 0.0, 0.0, 0.0, share)
    return Candidate(METHOD, "1 and 5", protocol=protocol, p_k=p_k)
