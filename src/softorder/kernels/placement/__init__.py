"""How surely every score has its place, in one go."""

from softorder.kernels.placement.contract import placement

__all__ = ["placement"]
