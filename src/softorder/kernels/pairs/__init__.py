"""Sums over the pairs of a list in which one element is preferred to the other."""

from softorder.kernels.pairs.contract import Weighing, pair_sums

__all__ = ["Weighing", "pair_sums"]
