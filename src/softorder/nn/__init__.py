"""Layers."""

from softorder.nn import functional
from softorder.nn.attention import TopKAttention
from softorder.nn.beams import Beams, BeamSearch, Decoder, SoftBeamSearch
from softorder.nn.gate import KHotGate
from softorder.nn.khot_head import KHotCode, KHotHead
from softorder.nn.neighbours import SoftKNN
from softorder.nn.permutation import SoftPermutation
from softorder.nn.quantile import SoftQuantile
from softorder.nn.rank import SoftRank
from softorder.nn.sort import SoftSort
from softorder.nn.topk import SoftTopK

__all__ = [
    "BeamSearch",
    "Beams",
    "Decoder",
    "KHotCode",
    "KHotGate",
    "KHotHead",
    "SoftBeamSearch",
    "SoftKNN",
    "SoftPermutation",
    "SoftQuantile",
    "SoftRank",
    "SoftSort",
    "SoftTopK",
    "TopKAttention",
    "functional",
]
