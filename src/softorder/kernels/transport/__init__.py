"""The thresholds of entropic transport plans."""

from softorder.kernels.transport.contract import SOLVERS, solve

__all__ = ["SOLVERS", "solve"]
