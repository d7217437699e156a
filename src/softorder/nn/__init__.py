"""Layers."""

from softorder.nn import functional
from softorder.nn.activations import TopKActivation
from softorder.nn.attention import TopKAttention
from softorder.nn.batch_topk import BatchTopK
from softorder.nn.beams import Beams, BeamSearch, Decoder, SoftBeamSearch
from softorder.nn.feature_use import FeatureUse
from softorder.nn.gate import KHotGate
from softorder.nn.khot_head import KHotCode, KHotHead
from softorder.nn.neighbours import SoftKNN
from softorder.nn.orderings import SoftPermutation, SoftQuantile, SoftRank, SoftSort, SoftTopK
from softorder.nn.router import Routing, TopKRouter
from softorder.nn.tokens import Tokens, TokenSelection
from softorder.nn.topk_mask import TopKMask

__all__ = [
    "BatchTopK",
    "BeamSearch",
    "Beams",
    "Decoder",
    "FeatureUse",
    "KHotCode",
    "KHotGate",
    "KHotHead",
    "Routing",
    "SoftBeamSearch",
    "SoftKNN",
    "SoftPermutation",
    "SoftQuantile",
    "SoftRank",
    "SoftSort",
    "SoftTopK",
    "TokenSelection",
    "Tokens",
    "TopKActivation",
    "TopKAttention",
    "TopKMask",
    "TopKRouter",
    "functional",
]
