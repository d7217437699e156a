"""Every (operator, method) that the laws run on, and what it claims."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import softorder as so
from tests.user_density import Student

# Laws are about p.
_OPERATORS = {
    "soft_topk": so.soft_topk,
    "log_soft_topk": lambda *args, **kwargs: so.log_soft_topk(*args, **kwargs).exp(),
}


@dataclass(frozen=True)
class Case:
    operator: str
    name: str
    call: Callable
    claims: object  # the row of so.methods()

    def __str__(self):
        return f"{self.operator}-{self.name}"


def cases():
    """The table of so.methods(), and a user's density that has to keep the claims of laplace."""
    rows = [row for row in so.methods() if row.operator in _OPERATORS]
    registered = [_case(row, row.name, row.name) for row in rows]
    return registered + [_case(row, "student", Student()) for row in rows if row.name == "laplace"]


def _case(row, name, method):
    return Case(row.operator, name, partial(_OPERATORS[row.operator], method=method), row)
