"""What is run: data, network, training."""

from __future__ import annotations

from dataclasses import dataclass

ARMS = (
    "teacher forcing",
    "soft beam, laplace",
    "teacher forcing, same time",
    "soft beam, logistic",
    "soft beam, sinkhorn",
)


@dataclass(frozen=True)
class Config:
    words: int  #: for training
    test_words: int
    letters: int  #: of a word, at most
    hidden: int
    batch: int
    pretraining: int  #: updates by teacher forcing, shared by all arms of a seed
    updates: int  #: afterwards, by each arm
    learning_rate: float
    fine_rate: float  #: learning rate afterwards
    temperature: float
    seeds: int
    k: int = 5
    teacher_forcing: float = 0.8  #: ρ, as in the paper
    preselect: int = 64
    arms: tuple[str, ...] = ARMS


PRESETS = {
    "quick": Config(
        words=8_000,
        test_words=500,
        letters=7,
        hidden=64,
        batch=64,
        pretraining=600,
        updates=100,
        learning_rate=3e-3,
        fine_rate=5e-4,
        temperature=0.1,
        seeds=3,
        arms=ARMS[:3],
    ),
    "medium": Config(
        words=30_000,
        test_words=2_000,
        letters=8,
        hidden=96,
        batch=64,
        pretraining=2_000,
        updates=300,
        learning_rate=3e-3,
        fine_rate=5e-4,
        temperature=0.1,
        seeds=3,
        arms=ARMS[:3],
    ),
    "paper": Config(
        words=110_000,
        test_words=10_000,
        letters=20,
        hidden=256,
        batch=128,
        pretraining=40_000,
        updates=4_000,
        learning_rate=1e-3,
        fine_rate=2e-4,
        temperature=0.1,
        seeds=3,
    ),
}
