"""What is run: lists, model, training, and what is tuned."""

from __future__ import annotations

from dataclasses import dataclass

POINTWISE, BPR = "pointwise", "BPR"
ARMS = (
    POINTWISE,
    BPR,
    "hinge",
    "softmax",
    "ListMLE",
    "LambdaLoss",
    "ApproxNDCG",
    "NDCG",
    "NeuralNDCG",
    "smooth AP",
    "recall@k",
)


@dataclass(frozen=True)
class Config:
    seeds: int
    epochs: int
    look: int  #: epochs between two looks at the validation part; the best one is kept
    rates: tuple[float, ...]
    temperatures: tuple[float, ...]
    arms: tuple[str, ...] = ARMS
    width: int = 32  #: of the vectors of users and films
    batch: int = 64  #: users
    relevant: int = 32  #: of a list, at the most
    others: int = 96
    weight_decay: float = 0.1
    validation: float = 0.1  #: part of a user's ratings
    test: float = 0.2
    liked: float = 4.0  #: this rating or a better one is relevant
    judged: int = 10  #: places


PRESETS = {
    "quick": Config(
        seeds=2,
        epochs=10,
        look=10,
        rates=(0.05,),
        temperatures=(1.0, 10.0),
        arms=(POINTWISE, BPR, "softmax", "LambdaLoss", "NDCG", "NeuralNDCG"),
    ),
    "paper": Config(
        seeds=5,
        epochs=40,
        look=10,
        rates=(0.02, 0.05),
        temperatures=(0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    ),
}
