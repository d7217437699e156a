"""log P(x) of subsets of a given size, P(x) ∝ e^<θ,x>, and its gradient."""

from softorder.kernels.subsets.contract import log_prob, vjp

__all__ = ["log_prob", "vjp"]
