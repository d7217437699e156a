"""The law of Pareto sampling: log P(x), the weights of its units, and the gradient."""

from softorder.kernels.pareto.contract import log_prob, vjp, weights

__all__ = ["log_prob", "vjp", "weights"]
