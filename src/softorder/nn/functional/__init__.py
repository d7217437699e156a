"""What the layers compute, as functions."""

from softorder.nn.functional.activations import batch_topk_activation, topk_activation
from softorder.nn.functional.attention import topk_attention
from softorder.nn.functional.balance import balanced_topk
from softorder.nn.functional.khot import khot_kl
from softorder.nn.functional.neighbours import nearest_neighbours, soft_neighbours

__all__ = [
    "balanced_topk",
    "batch_topk_activation",
    "khot_kl",
    "nearest_neighbours",
    "soft_neighbours",
    "topk_activation",
    "topk_attention",
]
