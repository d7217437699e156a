"""Which network a soft operator runs, unless its user says."""

from __future__ import annotations

from softorder.networks.build import selection_network, sorting_network
from softorder.networks.network import Network


def network_for(n: int, k: int, kind: str | None) -> Network:
    """The network that brings k of n to the front, or sorts them all.

    Without a kind, "splitter" for few of many and "pairwise" otherwise: both are the networks of
    fewer wires when their last wires are idle. The choice must not depend on n, if k < n.
    """
    if kind is None:
        kind = selecting(k) if k < n else "pairwise"
    if k == n and kind != "splitter":
        return sorting_network(n, kind)
    return selection_network(n, k, kind)


def selecting(k: int) -> str:
    """The kind of network for the selection of k: splitter networks are shallow for few."""
    return "splitter" if k <= 8 else "pairwise"
