"""Relaxation families, one file each, and the registry of their methods.

A name, as in `method="network"`, takes the defaults of its family; an object of one of these
classes says the rest:

>>> import torch, softorder as so
>>> method = so.relaxations.NetworkMethod("bitonic", comparator="logistic")
>>> so.soft_sort(torch.tensor([3.0, 1.0, 2.0]), method=method, temperature=0.01)
tensor([1., 2., 3.])
"""

from softorder.relaxations._base import (
    Method,
    MethodRow,
    MethodTable,
    find,
    find_any,
    register,
)
from softorder.relaxations.baselines import RenormalizedSigmoid, SequentialSoftmax, SoftmaxKTimes
from softorder.relaxations.fsum import FSumMethod
from softorder.relaxations.networks import NetworkMethod
from softorder.relaxations.permutahedron import PermutahedronMethod
from softorder.relaxations.row_softmax import NeuralSort, SoftSort, StochasticNeuralSort
from softorder.relaxations.threshold import ThresholdMethod
from softorder.relaxations.transport import Sinkhorn, TransportPlan

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
    "register",
]
