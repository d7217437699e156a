"""A comparator network as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from softorder.networks import pictures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Layer = tuple[tuple[int, int], ...]  #: comparators that share no wire


@dataclass(frozen=True, eq=False)
class Network:
    """Comparators between wires 0..n-1, in layers that can run at once.

    A comparator (i, j), i < j, leaves the smaller of its two values on wire i and the larger on
    wire j. Behind the last layer the j-th smallest value is on the wire `outputs[j]`.

    Args:
        kind: its name, such as "bitonic".
        n: the number of wires.
        outputs: the wires on which values come out, the smallest first.
        comparators: for every layer, (2, m) integers: the wires i of its m comparators, then j.

    >>> import softorder as so
    >>> network = so.networks.sorting_network(4)
    >>> network.layers
    (((0, 1), (2, 3)), ((0, 2), (1, 3)), ((1, 2),))
    >>> network.depth, network.size
    (3, 5)
    """

    kind: str
    n: int
    outputs: tuple[int, ...]
    comparators: tuple[np.ndarray, ...]  #: (2, m) for a layer of m: the wires i, then the wires j

    @property
    def k(self) -> int:
        """How many values come out in order."""
        return len(self.outputs)

    @property
    def depth(self) -> int:
        """The number of layers."""
        return len(self.comparators)

    @property
    def size(self) -> int:
        """The number of comparators."""
        return sum(layer.shape[1] for layer in self.comparators)

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """The comparators (i, j) of every layer."""
        return tuple(tuple(map(tuple, layer.T.tolist())) for layer in self.comparators)

    def run(self, values: Tensor) -> Tensor:
        """The k smallest along the last axis, in order.

        >>> import torch, softorder as so
        >>> so.networks.selection_network(5, 2).run(torch.tensor([3, 1, 4, 1, 5]))
        tensor([1, 1])
        """
        values = values.clone()
        for layer in self.comparators:
            low, high = torch.from_numpy(layer).to(values.device)
            a, b = values[..., low], values[..., high]
            values[..., low], values[..., high] = torch.minimum(a, b), torch.maximum(a, b)
        return values[..., list(self.outputs)]

    def draw(self) -> str:
        """A picture for a terminal: wires from left to right, a gap between layers.

        A wire ends behind its last comparator, unless a result comes out of it.

        >>> import softorder as so
        >>> print(so.networks.sorting_network(4).draw())
        0 ─●─●──── 0
        1 ─●─┼●─●─ 1
        2 ─●─●┼─●─ 2
        3 ─●──●─── 3
        """
        return pictures.text(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The same picture with matplotlib, on axes of yours or in a figure of its own."""
        return pictures.plot(self, ax)

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        task = "sorts" if self.k == self.n else f"selects {self.k} of"
        return f"{self.kind} network, {task} {self.n}: depth {self.depth}, size {self.size}"
