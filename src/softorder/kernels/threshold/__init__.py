"""The threshold of a soft top-k, p, and the gradients of p."""

from softorder.kernels.threshold.contract import (
    Threshold,
    backward,
    backward_of_one,
    backward_of_scores,
    forward,
    remembered,
    solve,
    thresholds,
    topk,
)

__all__ = [
    "Threshold",
    "backward",
    "backward_of_one",
    "backward_of_scores",
    "forward",
    "remembered",
    "solve",
    "thresholds",
    "topk",
]
