"""Losses, as functions and as modules."""

from softorder.losses.entropy import (
    TopKEntropyLoss,
    TruncatedTopKEntropyLoss,
    top_k_entropy,
    truncated_top_k_entropy,
)
from softorder.losses.fenchel import FenchelYoungLoss, fenchel_young
from softorder.losses.hinge import TopKHingeLoss, top_k_hinge
from softorder.losses.likelihood import ListMLELoss, ListNetLoss
from softorder.losses.multi_k import MultiKLoss
from softorder.losses.neural_ndcg import NeuralNDCGLoss
from softorder.losses.order import ListwiseCE, SpearmanLoss
from softorder.losses.pairwise import LambdaLoss, PairwiseLoss
from softorder.losses.permutation import PermutationCrossEntropyLoss, permutation_cross_entropy
from softorder.losses.perturbed import PerturbedFenchelYoungLoss, perturbed_fenchel_young
from softorder.losses.ranking import (
    ApproxNDCGLoss,
    MRRLoss,
    NDCGLoss,
    PrecisionAtK,
    RecallAtK,
)
from softorder.losses.retrieval import SmoothAPLoss, SmoothRecallLoss, retrieval_loss
from softorder.losses.robust import QuantileLoss, RankHuberLoss, TrimmedLoss, trimmed_mean
from softorder.losses.smooth import SmoothTopKLoss, smooth_top_k
from softorder.losses.top_k import TopKCrossEntropyLoss, top_k_cross_entropy

__all__ = [
    "ApproxNDCGLoss",
    "FenchelYoungLoss",
    "LambdaLoss",
    "ListMLELoss",
    "ListNetLoss",
    "ListwiseCE",
    "MRRLoss",
    "MultiKLoss",
    "NDCGLoss",
    "NeuralNDCGLoss",
    "PairwiseLoss",
    "PermutationCrossEntropyLoss",
    "PerturbedFenchelYoungLoss",
    "PrecisionAtK",
    "QuantileLoss",
    "RankHuberLoss",
    "RecallAtK",
    "SmoothAPLoss",
    "SmoothRecallLoss",
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
    "retrieval_loss",
    "smooth_top_k",
    "top_k_cross_entropy",
    "top_k_entropy",
    "top_k_hinge",
    "trimmed_mean",
    "truncated_top_k_entropy",
]
