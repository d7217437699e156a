"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.feature_selection.config import TRAINING, Training


@dataclass(frozen=True)
class Config(Training):
    price: float = 0.01  #: λ, of a pixel
    fixed: tuple[int, ...] = (5, 10, 15, 20, 30, 50, 100)
    starts: tuple[int, ...] = (10, 50, 200)


PRESETS = {
    "quick": Config(**TRAINING["quick"], seeds=1, fixed=(10, 30, 50, 100)),
    "seeds": Config(**TRAINING["seeds"], seeds=5, fixed=(10, 30, 50, 100)),
    "paper": Config(**TRAINING["paper"], seeds=5),
}
