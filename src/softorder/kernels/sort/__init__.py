"""Rows in ascending order, and what infinities in them mean."""

from softorder.kernels.sort.contract import Sorted, sort

__all__ = ["Sorted", "sort"]
