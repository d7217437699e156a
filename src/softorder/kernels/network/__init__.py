"""Soft comparator networks, in one go."""

from softorder.kernels.network import topk
from softorder.kernels.network.contract import run

__all__ = ["run", "topk"]
