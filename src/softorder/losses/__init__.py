"""Losses, as functions and as modules."""

from softorder.losses.entropy import (
    TopKEntropyLoss,
    TruncatedTopKEntropyLoss,
    top_k_entropy,
    truncated_top_k_entropy,
)
from softorder.losses.fenchel import FenchelYoungLoss, fenchel_young
from softorder.losses.hinge import TopKHingeLoss, top_k_hinge
from softorder.losses.multi_k import MultiKLoss
from softorder.losses.order import ListwiseCE, SpearmanLoss
from softorder.losses.permutation import PermutationCrossEntropyLoss, permutation_cross_entropy
from softorder.losses.perturbed import PerturbedFenchelYoungLoss, perturbed_fenchel_young
from softorder.losses.ranking import MRRLoss, NDCGLoss, PrecisionAtK, RecallAtK
from softorder.losses.robust import QuantileLoss, RankHuberLoss, TrimmedLoss, trimmed_mean
from softorder.losses.smooth import SmoothTopKLoss, smooth_top_k
from softorder.losses.top_k import TopKCrossEntropyLoss, top_k_cross_entropy

__all__ = [
    "FenchelYoungLoss",
    "ListwiseCE",
    "MRRLoss",
    "MultiKLoss",
    "NDCGLoss",
    "PermutationCrossEntropyLoss",
    "PerturbedFenchelYoungLoss",
    "PrecisionAtK",
    "QuantileLoss",
    "RankHuberLoss",
    "RecallAtK",
    "SmoothTopKLoss",
    "SpearmanLoss",
    "TopKCrossEntropyLoss",
    "TopKEntropyLoss",
    "TopKHingeLoss",
    "TrimmedLoss",
    "TruncatedTopKEntropyLoss",
    "fenchel_young",
    "permutation_cross_entropy",
    "perturbed_fenchel_young",
    "smooth_top_k",
    "top_k_cross_entropy",
    "top_k_entropy",
    "top_k_hinge",
    "trimmed_mean",
    "truncated_top_k_entropy",
]
