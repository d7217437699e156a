"""Relaxation families, one file each, and the registry of their methods."""

from softorder.methods._base import Method, MethodTable, Row, find, methods, register
from softorder.methods.fsum import FSumMethod
from softorder.methods.threshold import ThresholdMethod

__all__ = [
    "FSumMethod",
    "Method",
    "MethodTable",
    "Row",
    "ThresholdMethod",
    "find",
    "methods",
    "register",
]
