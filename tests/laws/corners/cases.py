"""Every operator and method that the contract binds, and what is still open of it."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from pathlib import Path

import torch

import softorder as so
from softorder.kernels import _native
from softorder.kernels.contract import OPERATORS
from tests.laws.corners.answers import solver
from tests.laws.corners.promises import broken

DTYPES = {"float64": torch.float64, "float32": torch.float32}
_OPEN = Path(__file__).with_name("open.txt")


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


# ---- what is open --------------------------------------------------------------------------------
#
# A line names a format, a kind of kernels, a corner, an operator and a part, then the methods whose
# promise is not kept there. `python -m tests.laws.corners` writes them anew.


@lru_cache
def is_open():
    """(format, kind, operator, method) → the (corner, part) that are known to be broken."""
    found = {}
    for line in _OPEN.read_text().splitlines():
        place, _, methods = line.partition(": ")
        dtype, kind, corner, operator, part = place.split()
        for method in methods.split():
            found.setdefault((dtype, kind, operator, method), set()).add((corner, part))
    return found


def write(failures):
    """From (format, kind, case, corner, part)."""
    lines = sorted(
        ((dtype, kind, corner, case.operator, part), case.method)
        for dtype, kind, case, corner, part in failures
    )
    grouped = groupby(lines, key=lambda line: line[0])
    text = [f"{' '.join(place)}: {' '.join(m for _, m in group)}\n" for place, group in grouped]
    _OPEN.write_text("".join(text))
