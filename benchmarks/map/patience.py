"""What would take too long: a first call that did, or one that the declared cost says will.

The first call of a case is timed. Above `LIMIT` seconds the cell is left out, and so are all larger
sizes. A size is not even tried where what an earlier one took, times the growth of the declared
cost, rows · n^d · (rows of the result), exceeds twice that; d is that of the registry's words. What
only the first call of a network paid for, building it, grows with n alone. Small sizes say nothing
of larger ones: there the call is the cost. After `BUDGET` seconds of a whole run nothing more is
tried, so that it ends on a busy machine, too; what was left out says so.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from benchmarks.cases import Shape

LIMIT = 0.25  #: seconds of a first call
BUDGET = 450.0  #: seconds of a whole run
SMALL = 5_000  #: scores; below, the call is the cost

_POWERS = {"n²": 2, "n³": 3}


def degree(cost: str) -> int:
    """The power of n in a cost as the registry words it, of its first form.

    >>> [degree(cost) for cost in ("O(n log n)", "O(n³)", "O(n k), O(n²) for all rows")]
    [1, 3, 1]
    """
    first = cost.split(",")[0]
    return max((power for sign, power in _POWERS.items() if sign in first), default=1)


@dataclass(frozen=True)
class Taken:
    """What one size took."""

    section: str
    shape: Shape
    outputs: int  # numbers of the result for each score
    first: float  # seconds of the first call
    usual: float  # and of the others
    builds: bool = False  # something for each n, in its first call

    def expected(self, cost: str, shape: Shape, outputs: int) -> float:
        """Seconds of a first call at another size."""
        one_row = (shape.n / self.shape.n) ** degree(cost)
        rows = shape.rows / self.shape.rows * outputs / self.outputs
        once = self.first - self.usual if self.builds else 0.0
        return self.usual * one_row * rows + once * one_row


@dataclass
class Patience:
    """What everybody who is measured took so far."""

    limit: float = LIMIT
    budget: float = math.inf
    started: float = field(default_factory=time.perf_counter)
    taken: dict[str, list[Taken]] = field(default_factory=dict)

    def note(self, who: str, taken: Taken) -> None:
        self.taken.setdefault(who, []).append(taken)

    def objection(
        self, who: str, section: str, cost: str, shape: Shape, outputs: int = 1
    ) -> str | None:
        """Why this size is not tried, if it is not. A gradient takes no less than none."""
        if time.perf_counter() - self.started > self.budget:
            return f"the {self.budget:g} s of the run were over"
        for before in self.taken.get(who, []):
            known = before.section in ("forward", section)
            if not known or before.shape.rows * before.shape.n < SMALL:
                continue
            expected = before.expected(cost, shape, outputs)
            if expected > 2 * self.limit or expected >= before.first > self.limit:
                took = f"{before.shape} took {before.first:.2g} s {before.section}"
                return f"{took}; {cost} makes that {expected:.2g} s here"
        return None
