"""Losses, as functions and as modules."""

from softorder.losses.permutation import PermutationCrossEntropyLoss, permutation_cross_entropy

__all__ = ["PermutationCrossEntropyLoss", "permutation_cross_entropy"]
