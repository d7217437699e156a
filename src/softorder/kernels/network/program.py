"""A network as instructions for whole layers, in which values that nobody needs are dropped.

Before a layer the values of some wires stand in a list. Behind it stand the smaller ones that are
needed later, the larger ones that are, and those that pass by. So the lists of a selection network
shrink quickly: its cost is that of its comparators, not wires × layers.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from softorder import _check
from softorder.kernels._compiler import constant_in_graphs
from softorder.networks import Network
from softorder.networks.choice import network_for


class Step(NamedTuple):
    """One layer. Everything is an index along a list, int64."""

    low: Tensor  # of the comparators' wires, in the list before the layer
    high: Tensor
    wire: Tensor  # the number of the higher wire
    taken: Tensor  # the list behind the layer, in [smaller values, larger values, list before]
    low_behind: Tensor  # where the values are in the list behind; its length if they are dropped
    high_behind: Tensor
    rest_behind: Tensor  # the same for the wires without comparator
    before: Tensor  # the list before the layer, in [lower wires, higher wires, wires without]


class Program(NamedTuple):
    steps: tuple[Step, ...]
    outputs: Tensor  # in the last list


def program(n: int, k: int, kind: str | None, device: torch.device) -> Program:
    """The instructions that bring the k smallest of n to the front, on a network of that kind."""
    if torch.compiler.is_compiling():
        steps, outputs = _numbers(n, k, kind)
        lists = (Step(*(_index(index, device) for index in step)) for step in steps)
        return Program(tuple(lists), _index(outputs, device))
    # A tensor that is made inside a transformation of torch.func must not outlive it. Sizes are
    # tensors under torch.jit.trace.
    return (_kept_tensors if _check.eager() else _tensors)(int(n), int(k), kind, device)


@constant_in_graphs
def _numbers(n: int, k: int, kind: str | None) -> tuple:
    """The program without tensors: a constant to the tracer, which must not look inside."""
    steps, outputs = _instructions(n, k, kind)
    return tuple(tuple(tuple(v.tolist()) for v in step) for step in steps), tuple(outputs.tolist())


def _index(places: tuple[int, ...], device: torch.device) -> Tensor:
    return torch.tensor(places, dtype=torch.int64, device=device)


def _tensors(n: int, k: int, kind: str | None, device: torch.device) -> Program:
    steps, outputs = _instructions(n, k, kind)
    moved = (Step(*(torch.from_numpy(index).to(device) for index in step)) for step in steps)
    return Program(tuple(moved), torch.from_numpy(outputs).to(device))


_kept_tensors = lru_cache(maxsize=64)(_tensors)


@lru_cache(maxsize=64)
def _instructions(n: int, k: int, kind: str | None) -> tuple[list[list[np.ndarray]], np.ndarray]:
    """The fields of every Step, and the outputs. The first list holds all wires."""
    wires = network_for(n, k, kind)
    before = np.arange(wires.n)
    steps = []
    for pairs, needed in zip(wires.comparators, _needed(wires), strict=True):
        step, before = _step(pairs, needed, before)
        steps.append(step)
    return steps, _places(before, wires.n)[list(wires.outputs)]


def _step(
    pairs: np.ndarray, needed: np.ndarray, before: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """The instructions for one layer, and the list behind it."""
    low, high = pairs
    rest = np.setdiff1d(before, pairs)
    values = np.concatenate([low, high, rest])
    behind = values[needed[values]]
    place, place_behind = (_places(wires, len(needed)) for wires in (before, behind))
    sources = np.concatenate([np.arange(2 * len(low)), 2 * len(low) + place[rest]])
    step = [
        place[low],
        place[high],
        high,
        sources[needed[values]],
        place_behind[low],
        place_behind[high],
        place_behind[rest],
        np.argsort(place[values]),
    ]
    return step, behind


def _needed(network: Network) -> list[np.ndarray]:
    """For every layer which wires are needed behind it."""
    wires = np.zeros(network.n, dtype=bool)
    wires[list(network.outputs)] = True
    needed = []
    for layer in reversed(network.comparators):
        needed.append(wires)
        wires = wires.copy()
        wires[layer] = True
    return needed[::-1]


def _places(wires: np.ndarray, n: int) -> np.ndarray:
    """Where each of n wires is in the list; its length if it is not there."""
    place = np.full(n, len(wires), dtype=np.int64)
    place[wires] = np.arange(len(wires))
    return place
