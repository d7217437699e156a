"""Every operator and method that the contract binds."""

from dataclasses import dataclass

import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.contract import OPERATORS
from tests.laws.corners.answers import solver
from tests.laws.corners.promises import broken

DTYPES = {"float64": torch.float64, "float32": torch.float32}


@dataclass(frozen=True)
class Case:
    operator: str
    method: str
    claims: object  # the row of so.methods()

    def __str__(self):
        return f"{self.operator}-{self.method}"

    def failures(self, kind, dtype):
        with _native.use(kind):
            return broken(solver(self.operator, self.method), self.operator, self.claims, dtype)


def cases():
    """The table of so.methods(); a loss by top-k takes the methods that have a logarithm."""
    rows = [row for row in so.methods() if row.operator in OPERATORS]
    losses = [row for row in rows if row.operator == "log_soft_topk"]
    return [Case(row.operator, row.name, row) for row in rows] + [
        Case("top_k_cross_entropy", row.name, row) for row in losses
    ]
