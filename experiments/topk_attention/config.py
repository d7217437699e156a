"""What is run: data, network, training."""

from __future__ import annotations

from dataclasses import dataclass

ARMS = ("softmax", "top-k, laplace", "top-k, logistic", "top-k, uniform")


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
        arms=ARMS[:2],
    ),
    "medium": Config(
        pairs=60_000,
        test_pairs=2_000,
        words=10,
        vocabulary=6_000,
        width=128,
        heads=4,
        layers=2,
        batch=64,
        updates=4_000,
        learning_rate=1e-3,
        k=4,
        seeds=2,
        arms=ARMS[:2],
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
