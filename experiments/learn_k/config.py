"""What is run."""

from __future__ import annotations

from dataclasses import dataclass

from experiments.feature_selection.config import Training


@dataclass(frozen=True)
class Config(Training):
    price: float = 0.01  #: λ, of a pixel
    fixed: tuple[int, ...] = (5, 10, 15, 20, 30, 50, 100)
    starts: tuple[int, ...] = (10, 50, 200)


PRESETS = {
    "quick": Config(
        training=8_000,
        test=5_000,
        epochs=5,
        batch=128,
        learning_rate=3e-3,
        gate_rate=0.1,
        hidden=(256, 128),
        seeds=1,
        fixed=(10, 20, 30, 50, 100),
    ),
    "paper": Config(
        training=None,
        test=None,
        epochs=100,
        batch=128,
        learning_rate=1e-3,
        gate_rate=1e-3,
        hidden=(512, 256),
        seeds=5,
    ),
}
