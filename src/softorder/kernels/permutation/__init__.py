"""Rows of soft permutations, in one go."""

from softorder.kernels.permutation.contract import permutation

__all__ = ["permutation"]
