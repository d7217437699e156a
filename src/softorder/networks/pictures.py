"""Pictures of networks: wires from left to right, layer after layer.

A wire ends behind its last comparator, unless a result comes out of it. Within a layer,
comparators that would cover each other stand side by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from softorder.networks.network import Layer, Network

_WIRE, _CROSSED, _END = "─", "┼", "●"
_ENDED = {_WIRE: " ", _CROSSED: "│", _END: _END}  #: what a wire that has ended looks like
_COMPARATOR, _LINE, _BAND, _TEXT = "#c2410c", "#94a3b8", "#f1f5f9", "#334155"


def text(network: Network) -> str:
    """For a terminal: a character for each wire and column, a gap between layers."""
    columns = [[_WIRE] * network.n]
    for layer in network.layers:
        columns += [*_columns(layer, network.n), [_WIRE] * network.n]
    wires = ["".join(wire) for wire in zip(*columns, strict=True)]
    width = len(str(network.n - 1))
    place = {wire: f" {j}" for j, wire in enumerate(network.outputs)}
    lines = []
    for i, wire in enumerate(wires):
        if i not in place:
            end = wire.rfind(_END) + 1
            wire = wire[:end] + "".join(_ENDED[c] for c in wire[end:])
        lines.append(f"{i:>{width}} {wire}{place.get(i, '')}".rstrip())
    return "\n".join(lines)


def plot(network: Network, axes: Axes | None) -> Axes:
    """With matplotlib: layers as bands, results with their places at the right end."""
    drawn = list(_placed(network))
    width = max((x for _, x, _ in drawn), default=0.0) + 1
    axes = _axes(network, width) if axes is None else axes
    ends = dict.fromkeys(range(network.n), -0.6)
    for layer, x, (low, high) in drawn:
        ends[low] = ends[high] = x
        axes.plot((x, x), (low, high), "o-", color=_COMPARATOR, lw=1.1, ms=3.2, zorder=3)
        if layer % 2 == 0:
            axes.axvspan(x - 0.5, x + 0.5, color=_BAND, lw=0, zorder=0)
    for j, wire in enumerate(network.outputs):
        ends[wire] = width
        axes.text(width + 0.2, wire, str(j), va="center", color=_COMPARATOR, fontsize=8)
    for wire, end in ends.items():
        axes.plot((-0.9, end), (wire, wire), color=_LINE, lw=0.8, zorder=1)
        if network.n <= 64:
            axes.text(-1.1, wire, str(wire), va="center", ha="right", color=_TEXT, fontsize=8)
    axes.set_ylim(network.n - 0.2, -0.8)
    axes.set_title(str(network), fontsize=10, color=_TEXT)
    axes.set_axis_off()
    return axes


def _axes(network: Network, width: float) -> Axes:
    """A figure of its own, as large as the network asks for."""
    from matplotlib import pyplot

    size = (min(2 + 0.22 * width, 16), min(1 + 0.22 * network.n, 16))
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def _placed(network: Network) -> Iterator[tuple[int, float, tuple[int, int]]]:
    """Every comparator with the number of its layer and where it stands."""
    x = 0.0
    for number, layer in enumerate(network.layers):
        for column in _apart(layer):
            yield from ((number, x, pair) for pair in column)
            x += 0.6
        x += 0.8


def _columns(layer: Layer, n: int) -> Iterator[list[str]]:
    """One character per wire for each group of comparators that do not cover each other."""
    for group in _apart(layer):
        column = [_WIRE] * n
        for low, high in group:
            column[low : high + 1] = [_END, *[_CROSSED] * (high - low - 1), _END]
        yield column


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
