"""What a run needs to know of its data: the parts, the network, how long and how fast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from experiments.data.idx import shuffled


@dataclass(frozen=True)
class Split:
    """Some rows of a table. The table is not copied: it may lie on a disk."""

    inputs: Tensor
    target: Tensor
    rows: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, places: Tensor | slice) -> tuple[Tensor, Tensor]:
        rows = self.rows[places]
        return self.inputs[rows], self.target[rows]

    def part(self, share: float) -> Split:
        """The first ones."""
        return replace(self, rows=self.rows[: round(share * len(self))])

    def to(self, device: str) -> Split:
        return Split(*(x.to(device) for x in vars(self).values()))


def whole(inputs: Tensor, target: Tensor) -> Split:
    return Split(inputs, target, torch.arange(len(target)))


def mixed(inputs: Tensor, target: Tensor) -> Split:
    """All rows, in an order that is always the same: the first ones stand for all."""
    return Split(inputs, target, shuffled(len(target), seed=0))


def held_out(inputs: Tensor, target: Tensor, share: float) -> tuple[Split, Split]:
    """To learn from, and that share to choose by."""
    every = mixed(inputs, target)
    held = int(share * len(every))
    return replace(every, rows=every.rows[held:]), replace(every, rows=every.rows[:held])


@dataclass(frozen=True)
class Data:
    name: str
    train: Split
    validation: Split
    test: Split
    classes: int
    model: Callable[[], nn.Module]
    epochs: int
    batch: int
    rate: float = 3e-3  #: the largest learning rate
    device: str = "cpu"

    @property
    def steps(self) -> int:
        return self.epochs * -(-len(self.train) // self.batch)

    def to(self, device: str) -> Data:
        parts = (self.train, self.validation, self.test)
        train, validation, test = (part.to(device) for part in parts)
        return replace(self, train=train, validation=validation, test=test, device=device)
