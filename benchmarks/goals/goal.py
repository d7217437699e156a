"""What a goal is: two calls, ours and another, and a limit for the ratio of their times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from benchmarks.timing import prepared


@dataclass(frozen=True)
class Side:
    """One of the two: an operator and its input, with its gradient or without."""

    name: str
    operator: Callable[[Tensor], Tensor]
    inputs: Callable[[], Tensor]
    backward: bool = False

    def call(self) -> Callable[[], Any]:
        return prepared(self.operator, self.inputs(), self.backward)


@dataclass(frozen=True)
class Goal:
    """In a table, the row is the worst of its cases."""

    section: str  # for the command line
    table: str  # its title
    row: str
    case: str  # what is measured together
    ours: Side
    theirs: Side
    limit: float | None  # None: shown, nothing is promised
