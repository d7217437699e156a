"""F-sums over sorted scores, and their roots."""

from softorder.kernels.fsum.contract import Roots, fsum, invert
from softorder.kernels.fsum.edges import edge_law, flat_below, share_of_lower

__all__ = ["Roots", "edge_law", "flat_below", "fsum", "invert", "share_of_lower"]
