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
from softorder.networks.transposition import odd_even

SORTING_KINDS = ("odd_even", *BUILDERS)
SELECTION_KINDS = (*SORTING_KINDS, "splitter")


def sorting_network(n: int, kind: str = "odd_even_merge") -> Network:
    """A network that sorts n values.

    The depth is ½ ⌈log n⌉(⌈log n⌉ + 1), in base 2, and n for "odd_even".

    Args:
        n: the number of wires, at least 1.
        kind: "odd_even" (neighbours, in n layers; n(n - 1)/2 comparators), "odd_even_merge" (the
            fewest comparators), "bitonic" or "bitonic_sort" (as sorts they are one), "pairwise".

    Papers: Batcher (1968); Parberry (1992); Knuth (1998).

    >>> import softorder as so
    >>> so.networks.sorting_network(16, "bitonic")
    <bitonic network, sorts 16: depth 10, size 80>
    >>> so.networks.sorting_network(16, "odd_even")
    <odd_even network, sorts 16: depth 16, size 120>
    """
    _check.count("n", n, 1)
    _check.choice("kind", kind, SORTING_KINDS)
    return _selection_network(int(n), int(n), kind)


def selection_network(n: int, k: int, kind: str = "splitter") -> Network:
    """A network that finds the k smallest of n values, in order.

    "splitter" is the shallowest for small k, about k ≤ log n; the others never have more layers
    than their sorting networks, which a splitter network may. "odd_even" and "bitonic_sort" are
    these sorting networks, without the comparators that the k smallest do not depend on: as deep,
    or one layer less; the others merge no more than k values at a time.

    Args:
        n: the number of wires, at least 1.
        k: how many are selected, from 1 to n.
        kind: "odd_even", "odd_even_merge", "bitonic", "bitonic_sort", "pairwise" or "splitter".

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
def _selection_network(n: int, k: int, kind: str) -> Network:
    if kind == "splitter":
        stages, outputs = splitter(n, k)
        return _network(kind, n, outputs, stages)
    if kind == "odd_even":
        return _network(kind, n, np.arange(k), odd_even(n))
    wires, wanted = _power_of_two(n), _power_of_two(k)
    return _network(kind, n, np.arange(k), cut(BUILDERS[kind](wires, wanted), n))


def _network(kind: str, n: int, outputs: np.ndarray, stages: Iterable[Stage]) -> Network:
    needed = live(stages, outputs, n)
    return Network(kind, n, tuple(outputs.tolist()), scheduled(needed, n))


def _power_of_two(n: int) -> int:
    """The first one that is not below n."""
    return 1 << (n - 1).bit_length()
