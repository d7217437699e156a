"""What the layers compute, as functions."""

from softorder.nn.functional.attention import topk_attention

__all__ = ["topk_attention"]
