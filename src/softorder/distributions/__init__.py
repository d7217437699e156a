"""Distributions of k-hot vectors, as torch.distributions has them."""

from softorder.distributions.constraints import KHotVector
from softorder.distributions.khot import KHot

__all__ = ["KHot", "KHotVector"]
