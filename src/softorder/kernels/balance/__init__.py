"""The column potentials of doubly stochastic matrices."""

from softorder.kernels.balance.contract import solve

__all__ = ["solve"]
