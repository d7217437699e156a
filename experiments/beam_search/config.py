"""What is run: data, network, training."""

from __future__ import annotations

from dataclasses import dataclass

ARMS = (
    "teacher forcing",
    "soft beam, laplace",
    "soft beam, sorted_soft",  # the paper's
    "teacher forcing, same time",
    "soft beam, logistic",
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
    phrase: int = 1  #: words that are said one after the other
    validation_words: int = 0  #: to choose one of CANDIDATES by, and for the curves
    looks: int = 5  #: points of a curve
    early: float = 0.5  #: the part of the pretraining after which an early switch comes
    phrases: tuple[int, ...] = ()  #: sizes of phrases, each with all of the arms


@dataclass(frozen=True)
class Candidate:
    """How an arm goes on after the pretraining; None is what the configuration has."""

    rate: float = 1.0  #: times the learning rate
    temperature: float | None = None
    k: int | None = None
    sampling: float = 0.0  #: how often teacher forcing reads what the network says
    early: bool = False  #: from a network of a part of the pretraining


#: each kind of arm has four to choose from
CANDIDATES = {
    "soft beam": (
        Candidate(),
        Candidate(temperature=0.5, k=3),
        Candidate(rate=3.0),
        Candidate(rate=3.0, early=True),
    ),
    "teacher forcing": (
        Candidate(),
        Candidate(sampling=0.3),
        Candidate(rate=3.0),
        Candidate(rate=3.0, early=True),
    ),
}


def candidates(arm: str, config: Config) -> tuple[Candidate, ...]:
    """Without a validation part there is nothing to choose by."""
    every = CANDIDATES["soft beam" if arm.startswith("soft beam") else "teacher forcing"]
    return every if config.validation_words else every[:1]


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
        seeds=5,
        arms=ARMS[:4],
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
        arms=(ARMS[0], ARMS[1], ARMS[3]),
    ),
    # Longer outputs. Every arm chooses one of its candidates.
    "long": Config(
        words=8_000,
        test_words=500,
        validation_words=200,
        letters=5,
        hidden=64,
        batch=32,
        pretraining=2_000,
        updates=200,
        learning_rate=3e-3,
        fine_rate=5e-4,
        temperature=0.1,
        seeds=5,
        arms=(ARMS[0], ARMS[1], ARMS[3]),
        phrases=(1, 4),
        looks=4,
    ),
    # Every arm chooses one of its candidates.
    "paper": Config(
        words=110_000,
        test_words=10_000,
        validation_words=5_000,
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
