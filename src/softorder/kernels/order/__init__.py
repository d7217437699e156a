"""Soft ranks and the soft sort, in one go."""

from softorder.kernels.order.contract import rank, sort

__all__ = ["rank", "sort"]
