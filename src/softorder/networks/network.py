"""A comparator network as plain data, and pictures of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Layer = tuple[tuple[int, int], ...]  #: comparators that share no wire


@dataclass(frozen=True, eq=False)
class Network:
    """Comparators between wires 0..n-1, in layers that can run at once.

    A comparator (i, j), i < j, leaves the smaller of its two values on wire i and the larger on
    wire j. Behind the last layer the j-th smallest value is on the wire `outputs[j]`.

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

        >>> import softorder as so
        >>> print(so.networks.sorting_network(4).draw())
        0 ─●─●──── 0
        1 ─●─┼●─●─ 1
        2 ─●─●┼─●─ 2
        3 ─●──●─── 3
        """
        wires = [_WIRE] * self.n
        for layer in self.layers:
            parts = [*_columns(layer, self.n), [_WIRE] * self.n]
            wires = ["".join(wire) for wire in zip(wires, *parts, strict=True)]
        width = len(str(self.n - 1))
        place = {wire: str(j) for j, wire in enumerate(self.outputs)}
        lines = [f"{i:>{width}} {wire} {place.get(i, '')}" for i, wire in enumerate(wires)]
        return "\n".join(line.rstrip() for line in lines)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The same picture with matplotlib."""
        from matplotlib import pyplot

        axes = pyplot.subplots()[1] if ax is None else ax
        x = 0.0
        for layer in self.layers:
            for column in _apart(layer):
                low, high = np.array(column).T
                axes.vlines(np.full(len(column), x), low, high, color="C0", lw=1)
                axes.plot(np.full(2 * len(column), x), [*low, *high], "o", color="C0", ms=3)
                x += 0.4
            x += 0.6
        axes.hlines(np.arange(self.n), -1, x, color="0.7", lw=0.6, zorder=0)
        axes.plot(np.full(self.k, x), self.outputs, ">", color="C1", ms=4)
        axes.invert_yaxis()
        axes.set(xticks=[], ylabel="wire", title=str(self))
        return axes

    def __repr__(self) -> str:
        return f"<{self}>"

    def __str__(self) -> str:
        task = "sorts" if self.k == self.n else f"selects {self.k} of"
        return f"{self.kind} network, {task} {self.n}: depth {self.depth}, size {self.size}"


_WIRE, _CROSSED, _END = "─", "┼", "●"


def _columns(layer: Layer, n: int) -> list[list[str]]:
    """One character per wire for each group of comparators that do not overlap in a picture."""
    columns = []
    for group in _apart(layer):
        column = [_WIRE] * n
        for low, high in group:
            column[low : high + 1] = [_END, *[_CROSSED] * (high - low - 1), _END]
        columns.append(column)
    return columns


def _apart(layer: Layer) -> list[list[tuple[int, int]]]:
    """The comparators of a layer in groups that can be drawn above each other."""
    groups: list[list[tuple[int, int]]] = []
    for low, high in sorted(layer):
        free = next((group for group in groups if group[-1][1] < low), None)
        if free is None:
            groups.append([(low, high)])
        else:
            free.append((low, high))
    return groups
