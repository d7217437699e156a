"""Ranks and sorts by projection, in one go."""

from softorder.kernels.permutahedron.contract import rank, sort

__all__ = ["rank", "sort"]
