"""The training loop of SoftKNNClassifier."""

from __future__ import annotations

import copy
import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor

from softorder.cli._progress import Progress
from softorder.nn import SoftKNN


@dataclass
class Trainer:
    """Adam on leave-one-out batches; it lives on from one partial_fit to the next."""

    model: SoftKNN
    learning_rate: float
    weight_decay: float
    batch_size: int
    random: np.random.RandomState
    losses: list[float] = field(default_factory=list)  #: the mean of every epoch
    scores: list[float] = field(default_factory=list)  #: on the validation part, if there is one

    def __post_init__(self) -> None:
        self._optimiser = torch.optim.Adam(
            self.model.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )

    def epoch(self, x: Tensor, y: Tensor) -> None:
        """One pass in random order."""
        self.model.train()
        order = torch.from_numpy(self.random.permutation(len(x))).to(x.device)
        total = 0.0
        batches = _batches(len(x), self.batch_size, self.model.k)
        for start, end in batches:
            part = order[start:end]
            loss = self.model(x[part], y[part])
            self._optimiser.zero_grad()
            loss.backward()
            self._optimiser.step()
            total += loss.item() * (end - start)
        self.losses.append(total / len(x))

    def fit(self, x: Tensor, y: Tensor, epochs: int, stopping: Stopping | None, show: bool) -> None:
        """Several epochs; with `stopping`, as long as they help."""
        kept, held = (x, y), None
        if stopping is not None:
            kept, held = stopping.split(x, y, self.random)
        with _bar(epochs, show) as bar:
            for _ in range(epochs):
                self.epoch(*kept)
                status = f"loss {self.losses[-1]:.4f}"
                if stopping is not None and held is not None:
                    self.scores.append(self._score(*kept, *held))
                    status += f", validation accuracy {self.scores[-1]:.4f}"
                bar.step(status)
                if stopping is not None and stopping.over(self.scores, self.model):
                    break
        if stopping is not None:
            self.model.load_state_dict(stopping.best)

    def _score(self, x: Tensor, y: Tensor, queries: Tensor, labels: Tensor) -> float:
        predicted = self.model.remember(x, y).predict(queries)
        return (predicted == labels).float().mean().item()


@dataclass
class Stopping:
    """Stops when the accuracy on a part that was held out has not risen for some epochs."""

    fraction: float
    patience: int
    best: dict[str, Any] = field(default_factory=dict)  #: the state of the best epoch

    def split(
        self, x: Tensor, y: Tensor, random: np.random.RandomState
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        labels = y.cpu().numpy()
        _, counts = np.unique(labels, return_counts=True)
        # Every class is held out in proportion, unless there are too few items for that.
        enough = counts.min() > 1 and self.fraction * len(labels) >= len(counts)
        kept, held = train_test_split(
            np.arange(len(labels)),
            test_size=self.fraction,
            stratify=labels if enough else None,
            random_state=random,
        )
        return (x[kept], y[kept]), (x[held], y[held])

    def over(self, scores: list[float], model: SoftKNN) -> bool:
        best = max(range(len(scores)), key=scores.__getitem__)  # the first of equal ones
        if best == len(scores) - 1:
            self.best = copy.deepcopy(model.state_dict())
        return len(scores) - 1 - best >= self.patience


def _batches(n: int, size: int, k: int) -> list[tuple[int, int]]:
    """Equal parts of at most `size`, but of k + 1 at least: each item needs k others."""
    parts = max(1, min(-(-n // size), n // (k + 1)))
    edges = np.linspace(0, n, parts + 1).astype(int).tolist()
    return list(itertools.pairwise(edges))


class _Silent:
    def __enter__(self) -> _Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def step(self, label: str) -> None:
        pass


def _bar(epochs: int, show: bool) -> Progress | _Silent:
    return Progress(epochs) if show else _Silent()
