"""Which places share a value in an isotonic regression."""

from softorder.kernels.isotonic.contract import blocks

__all__ = ["blocks"]
