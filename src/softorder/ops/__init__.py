"""The operators."""

from softorder.ops.topk import log_soft_topk, soft_topk

__all__ = ["log_soft_topk", "soft_topk"]
