"""sorting_network and selection_network."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from softorder import _check
from softorder.networks.classic import BUILDERS
from softorder.networks.network import Network
from softorder.networks.splitter import splitter
from softorder.networks.stages import Stage, cut, live, scheduled

SORTING_KINDS = tuple(BUILDERS)
SELECTION_KINDS = (*SORTING_KINDS, "splitter")


def sorting_network(n: int, kind: str = "odd_even") -> Network:
    """A network that sorts n values: depth ½ ⌈log n⌉(⌈log n⌉ + 1), in base 2, for every kind.

    Args:
        n: the number of wires, at least 1.
        kind: "odd_even" (the fewest comparators), "bitonic" or "pairwise".

    Papers: Batcher (1968); Parberry (1992).

    >>> import softorder as so
    >>> so.networks.sorting_network(16, "bitonic")
    <bitonic network, sorts 16: depth 10, size 80>
    """
    _check.count("n", n, 1)
    _check.choice("kind", kind, SORTING_KINDS)
    return _sorting_network(int(n), kind)


def selection_network(n: int, k: int, kind: str = "splitter") -> Network:
    """A network that finds the k smallest of n values, in order.

    "splitter" is the shallowest for small k, about k ≤ log n; the others never have more layers
    than their sorting networks, which a splitter network may.

    Args:
        n: the number of wires, at least 1.
        k: how many are selected, from 1 to n.
        kind: "odd_even", "bitonic", "pairwise" or "splitter".

    Papers: Wah & Chen (1984); Zazon-Ivry & Codish (2012); Petersen et al. (2022), appendix B.

    >>> import softorder as so
    >>> so.networks.selection_network(16, 3)
    <splitter network, selects 3 of 16: depth 7, size 31>
    """
    _check.count("n", n, 1)
    _check.count("k", k, 1, n)
    _check.choice("kind", kind, SELECTION_KINDS)
    return _selection_network(int(n), int(k), kind)


@lru_cache(maxsize=128)
def _sorting_network(n: int, kind: str) -> Network:
    wires = _power_of_two(n)
    return _network(kind, n, np.arange(n), cut(BUILDERS[kind](wires, wires), n))


@lru_cache(maxsize=128)
def _selection_network(n: int, k: int, kind: str) -> Network:
    if kind == "splitter":
        stages, outputs = splitter(n, k)
        return _network(kind, n, outputs, stages)
    wires, wanted = _power_of_two(n), _power_of_two(k)
    return _network(kind, n, np.arange(k), cut(BUILDERS[kind](wires, wanted), n))


def _network(kind: str, n: int, outputs: np.ndarray, stages: Iterable[Stage]) -> Network:
    needed = live(stages, outputs, n)
    return Network(kind, n, tuple(outputs.tolist()), scheduled(needed, n))


def _power_of_two(n: int) -> int:
    """The first one that is not below n."""
    return 1 << (n - 1).bit_length()
