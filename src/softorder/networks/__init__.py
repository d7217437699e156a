"""Sorting and selection networks, as plain data.

    kind              depth to sort      selects k of n by
    "odd_even"        n                  the sort; neighbours are compared (transposition)
    "odd_even_merge"  ½ L (L + 1)        merges of at most k (Batcher)
    "bitonic"         ½ L (L + 1)        merges of at most k (Batcher)
    "bitonic_sort"    ½ L (L + 1)        the sort
    "pairwise"        ½ L (L + 1)        sorts of those that may be among the k (Parberry)
    "splitter"        it only selects    splitter cascades (Petersen et al. 2022)

with L = ⌈log2 n⌉. Selection by merges is that of Wah & Chen (1984), in Table 7 of Petersen et al.
(2022) odd-even, pairwise and bitonic selection.

Names elsewhere. diffsort, difftopk and the papers behind them call transposition `odd_even`, too.
Their `bitonic` is the whole sort, also where k rows are wanted: our "bitonic_sort" for n a power of
two. For other n they cut off first wires, also of blocks that sort down, where we cut off last ones
of a network that sorts up throughout. That is another network, and for some n none that sorts, by
the 0-1 principle: 22 is the smallest, 38 and 42 to 46 are others. Their `splitter_selection` is our
"splitter" for every n and k.

Their k rows are the last ones of an ascending sort. For splitter networks, and bitonic ones of a
power of two, these are ours of descending scores. For "odd_even" they are the last k of our
ascending rows; with n even also our descending ones of the scores in reverse.

>>> import softorder as so
>>> so.networks.sorting_network(1024, "bitonic").depth
55
>>> so.networks.sorting_network(1024, "odd_even").depth
1024
>>> so.networks.selection_network(1024, 5, "odd_even_merge").depth
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
