"""What is run: data, network, training."""

from __future__ import annotations

from dataclasses import dataclass

ARMS = ("softmax", "top-k, laplace", "top-k, soft", "top-k, logistic", "top-k, uniform")


@dataclass(frozen=True)
class Config:
    pairs: int  #: for training
    test_pairs: int
    words: int  #: of a sentence, at most
    vocabulary: int  #: of each language
    width: int
    heads: int
    layers: int
    batch: int
    updates: int
    learning_rate: float
    k: int
    seeds: int
    temperature: float = 0.5  #: at the start; it is learned
    dropout: float = 0.1
    warm_up: float = 0.1  #: part of the updates
    label_smoothing: float = 0.1
    arms: tuple[str, ...] = ARMS
    validation_pairs: int = 0  #: to choose one of CANDIDATES by


@dataclass(frozen=True)
class Candidate:
    """What is chosen; None is what the configuration has."""

    k: int | None = None
    temperature: float | None = None  #: at the start; of softmax it divides the queries' weights
    rate: float = 1.0  #: times the learning rate

    def __str__(self) -> str:
        """
        >>> str(Candidate(k=2, temperature=0.25)), str(Candidate(temperature=1.0, rate=2.0))
        ('k = 2 and τ = 0.25 at the start', 'τ = 1 at the start and 2 times the learning rate')
        """
        parts = [f"k = {self.k}"] if self.k is not None else []
        if self.temperature is not None:
            parts.append(f"τ = {self.temperature:g} at the start")
        if self.rate != 1:
            parts.append(f"{self.rate:g} times the learning rate")
        return " and ".join(parts) or "the configuration"


#: each kind of attention has four to choose from
CANDIDATES = {
    "softmax": tuple(Candidate(temperature=t, rate=r) for t in (1.0, 0.5) for r in (1.0, 2.0)),
    "top-k": tuple(Candidate(k=k, temperature=1.0, rate=r) for k in (2, 4) for r in (1.0, 2.0)),
}


def candidates(arm: str, config: Config) -> tuple[Candidate, ...]:
    """Without a validation part there is nothing to choose by."""
    if not config.validation_pairs:
        return (Candidate(),)
    return CANDIDATES["softmax" if arm == "softmax" else "top-k"]


PRESETS = {
    "quick": Config(
        pairs=20_000,
        test_pairs=500,
        words=8,
        vocabulary=3_000,
        width=64,
        heads=4,
        layers=2,
        batch=64,
        updates=700,
        learning_rate=3e-3,
        k=3,
        seeds=2,
        dropout=0.0,
        arms=ARMS[:3],
    ),
    # As quick, but each arm takes the best of four settings, chosen with seed 0.
    "tuned": Config(
        pairs=20_000,
        test_pairs=1_000,
        validation_pairs=500,
        words=8,
        vocabulary=3_000,
        width=64,
        heads=4,
        layers=2,
        batch=64,
        updates=700,
        learning_rate=3e-3,
        k=3,
        seeds=5,
        dropout=0.0,
        arms=ARMS[:3],
    ),
    "paper": Config(
        pairs=115_000,
        test_pairs=5_000,
        words=20,
        vocabulary=16_000,
        width=256,
        heads=8,
        layers=4,
        batch=128,
        updates=60_000,
        learning_rate=5e-4,
        k=5,
        seeds=3,
    ),
}
