"""Layers."""

from softorder.nn import functional
from softorder.nn.attention import TopKAttention
from softorder.nn.beams import Beams, BeamSearch, Decoder, SoftBeamSearch
from softorder.nn.gate import KHotGate
from softorder.nn.khot_head import KHotCode, KHotHead
from softorder.nn.neighbours import SoftKNN
from softorder.nn.orderings import SoftPermutation, SoftQuantile, SoftRank, SoftSort, SoftTopK

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
