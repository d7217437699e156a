"""Losses, as functions and as modules."""

from softorder.losses.permutation import PermutationCrossEntropyLoss, permutation_cross_entropy
from softorder.losses.top_k import TopKCrossEntropyLoss, top_k_cross_entropy

__all__ = [
    "PermutationCrossEntropyLoss",
    "TopKCrossEntropyLoss",
    "permutation_cross_entropy",
    "top_k_cross_entropy",
]
