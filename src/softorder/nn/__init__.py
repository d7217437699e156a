"""Layers."""

from softorder.nn.topk import SoftTopK

__all__ = ["SoftTopK"]
