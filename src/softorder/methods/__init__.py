"""Relaxation families, one file each, and the registry of their methods."""

from softorder.methods._base import (
    Method,
    MethodRow,
    MethodTable,
    find,
    find_any,
    methods,
    register,
)
from softorder.methods.baselines import RenormalizedSigmoid, SequentialSoftmax, SoftmaxKTimes
from softorder.methods.fsum import FSumMethod
from softorder.methods.networks import NetworkMethod
from softorder.methods.permutahedron import PermutahedronMethod
from softorder.methods.row_softmax import NeuralSort, SoftSort, StochasticNeuralSort
from softorder.methods.threshold import ThresholdMethod
from softorder.methods.transport import Sinkhorn, TransportPlan

__all__ = [
    "FSumMethod",
    "Method",
    "MethodRow",
    "MethodTable",
    "NetworkMethod",
    "NeuralSort",
    "PermutahedronMethod",
    "RenormalizedSigmoid",
    "SequentialSoftmax",
    "Sinkhorn",
    "SoftSort",
    "SoftmaxKTimes",
    "StochasticNeuralSort",
    "ThresholdMethod",
    "TransportPlan",
    "find",
    "find_any",
    "methods",
    "register",
]
