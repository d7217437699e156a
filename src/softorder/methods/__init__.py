"""Relaxation families, one file each, and the registry of their methods."""

from softorder.methods._base import Method, MethodTable, Row, find, methods, register
from softorder.methods.fsum import FSumMethod
from softorder.methods.threshold import ThresholdMethod
from softorder.methods.transport import Sinkhorn, TransportPlan

__all__ = [
    "FSumMethod",
    "Method",
    "MethodTable",
    "Row",
    "Sinkhorn",
    "ThresholdMethod",
    "TransportPlan",
    "find",
    "methods",
    "register",
]
