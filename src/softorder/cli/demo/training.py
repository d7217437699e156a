"""Training: the same network, batches and optimiser for every loss."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import nn

from softorder.cli.demo import neighbours
from softorder.cli.demo.digits import Digits, load
from softorder.cli.demo.neighbours import CrossEntropy, SoftNeighbours


@dataclass
class Run:
    """One training: what came out of it."""

    digits: Digits
    body: nn.Module
    loss: SoftNeighbours | CrossEntropy
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # of each step

    @property
    def milliseconds_per_step(self) -> float:
        return 1e3 * statistics.median(self.seconds)

    def neighbour_accuracy(self) -> float:
        return neighbours.neighbour_accuracy(self.body, self.digits)

    def classifier_accuracy(self) -> float:
        assert isinstance(self.loss, CrossEntropy)
        with torch.no_grad():
            predicted = self.loss.classifier(self.digits.test_images).argmax(-1)
        return neighbours.accuracy(predicted, self.digits.test_labels)


@contextmanager
def reproducible() -> Iterator[None]:
    """One thread, which is as fast for so small a network, and torch's random state put back."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            yield
    finally:
        torch.set_num_threads(threads)


def train(method: str | None, seed: int, steps: int, tick: Callable[[], None]) -> Run:
    """Through the soft top-k of a method, or (None) with plain cross-entropy."""
    torch.manual_seed(seed)
    digits, body = load(seed), neighbours.network()
    loss = CrossEntropy(body) if method is None else SoftNeighbours(body, method, digits)
    run = Run(digits, body, loss)
    optimiser = torch.optim.Adam(loss.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        start = time.perf_counter()
        order = torch.randperm(len(digits.labels))
        value = loss(digits.images[order], digits.labels[order])
        optimiser.zero_grad()
        value.backward()
        optimiser.step()
        schedule.step()
        run.seconds.append(time.perf_counter() - start)
        run.losses.append(value.item())
        tick()
    return run
