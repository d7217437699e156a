"""F-sums over sorted scores, and their roots."""

from softorder.kernels.fsum.contract import Roots, fsum, invert

__all__ = ["Roots", "fsum", "invert"]
