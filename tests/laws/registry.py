"""Every (operator, method) that the laws run on, and what it claims."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import softorder as so
from tests.laws.orderings import operators as orderings
from tests.user_density import Student

# Laws of top-k are about p.
TOPK = {
    "soft_topk": so.soft_topk,
    "log_soft_topk": lambda *args, **kwargs: so.log_soft_topk(*args, **kwargs).exp(),
}


@dataclass(frozen=True)
class Case:
    operator: str
    name: str
    call: Callable
    claims: object  # the row of so.methods()
    kernels: tuple  # that can serve it

    def __str__(self):
        return f"{self.operator}-{self.name}"


def cases():
    """The table of so.methods(), and a user's density that has to keep the claims of laplace."""
    rows = [row for row in so.methods() if row.operator in (*TOPK, *orderings.NAMES)]
    registered = [_case(row, row.name, row.name) for row in rows]
    templates = [row for row in rows if row.name == "laplace"]
    return registered + [_case(row, "student", Student()) for row in templates]


def _case(row, name, method):
    if row.operator in TOPK:
        call = partial(TOPK[row.operator], method=method)
    else:
        call = orderings.operator(row.operator, method)
    return Case(row.operator, name, call, row, _kernels(row.operator, name))


_PLAIN_TOO = {
    ("soft_permutation", "softsort"),
    ("soft_permutation", "network"),
    ("soft_rank", "permutahedron"),
}


def _kernels(operator, name):
    """Which can serve it. Without compiled kernels, three densities share the same F-sums.

    Of other families one operator each shows what they do without: the others are made alike.
    """
    if name == "student":
        return ("torch",)
    if name not in so.densities.BUILT_IN:
        return ("native", "torch") if (operator, name) in _PLAIN_TOO else ("native",)
    alike = operator in orderings.NAMES and name in ("logistic", "normal", "cauchy")
    return ("native",) if alike else ("native", "torch")
