"""What the layers compute, as functions."""

from softorder.nn.functional.attention import topk_attention
from softorder.nn.functional.khot import khot_kl
from softorder.nn.functional.neighbours import nearest_neighbours, soft_neighbours

__all__ = ["khot_kl", "nearest_neighbours", "soft_neighbours", "topk_attention"]
