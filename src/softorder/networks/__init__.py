"""Sorting and selection networks, as plain data.

>>> import softorder as so
>>> so.networks.sorting_network(1024, "bitonic").depth
55
>>> so.networks.selection_network(1024, 5, "odd_even").depth
34
>>> so.networks.selection_network(1024, 5).depth
21
"""

from softorder.networks.build import (
    SELECTION_KINDS,
    SORTING_KINDS,
    selection_network,
    sorting_network,
)
from softorder.networks.network import Network

__all__ = ["SELECTION_KINDS", "SORTING_KINDS", "Network", "selection_network", "sorting_network"]
