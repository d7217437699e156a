"""The threshold of a soft top-k, p, and the gradients of p."""

from softorder.kernels.threshold.contract import (
    Threshold,
    backward,
    backward_of_one,
    forward,
    solve,
)

__all__ = ["Threshold", "backward", "backward_of_one", "forward", "solve"]
