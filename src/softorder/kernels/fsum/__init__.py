"""F-sums over sorted scores, and their roots."""

from softorder.kernels.fsum.contract import Roots, fsum, invert
from softorder.kernels.fsum.edges import edge_law, share_of_lower

__all__ = ["Roots", "edge_law", "fsum", "invert", "share_of_lower"]
