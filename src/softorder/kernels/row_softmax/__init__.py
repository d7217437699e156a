"""Rows of SoftSort and NeuralSort, in one go."""

from softorder.kernels.row_softmax.contract import rows

__all__ = ["rows"]
