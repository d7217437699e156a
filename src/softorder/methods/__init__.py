"""Relaxation families, one file each, and the registry of their methods."""

from softorder.methods._base import Method, MethodTable, Row, find, find_any, methods, register
from softorder.methods.fsum import FSumMethod
from softorder.methods.masks import RenormalizedSigmoid, SequentialSoftmax
from softorder.methods.networks import NetworkMethod
from softorder.methods.permutahedron import PermutahedronMethod
from softorder.methods.softmax_rows import NeuralSort, SoftSort, StochasticNeuralSort
from softorder.methods.threshold import ThresholdMethod
from softorder.methods.transport import Sinkhorn, TransportPlan

__all__ = [
    "FSumMethod",
    "Method",
    "MethodTable",
    "NetworkMethod",
    "NeuralSort",
    "PermutahedronMethod",
    "RenormalizedSigmoid",
    "Row",
    "SequentialSoftmax",
    "Sinkhorn",
    "SoftSort",
    "StochasticNeuralSort",
    "ThresholdMethod",
    "TransportPlan",
    "find",
    "find_any",
    "methods",
    "register",
]
