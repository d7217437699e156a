"""The steps F of soft comparators, in plain torch.

Between the kernels a comparator goes by one string: its name, and for "logistic_phi" λ behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

Step = Callable[[Tensor], Tensor]

PHI = "logistic_phi"
NEAR_ZERO = 1e-10  #: what is added to |u|, so that the slope of "logistic_phi" stays finite there


def _optimal(u: Tensor) -> Tensor:
    far = u.abs() > 0.25
    tail = 1 / (16 * torch.where(far, u, 1.0))
    return torch.where(far, torch.where(u > 0, 1 - tail, -tail), u + 0.5)


#: How much two values stay where they are, given u = (higher wire - lower wire)/τ.
_STEPS: dict[str, Step] = {
    "logistic": torch.sigmoid,
    "cauchy": lambda u: torch.atan(u) / math.pi + 0.5,
    "reciprocal": lambda u: u / (1 + 2 * u.abs()) + 0.5,
    "optimal": _optimal,
    "gaussian": torch.special.ndtr,
}

COMPARATORS = (*_STEPS, PHI)

#: In the order of enum Comparator: those that the compiled kernels and Triton's know.
COMPILED = (*_STEPS, f"{PHI} 0.25", f"{PHI} 0.5")


def named(comparator: str, art_lambda: float | None = None) -> str:
    """The string by which kernels know the comparator; of "logistic_phi" λ is 1/4 if not given."""
    if comparator != PHI:
        return comparator
    return f"{PHI} {0.25 if art_lambda is None else float(art_lambda)!r}"


def step(name: str) -> Step:
    """F for what `named` returns."""
    if not name.startswith(PHI):
        return _STEPS[name]
    art_lambda = float(name.removeprefix(PHI))
    return lambda u: torch.sigmoid(u * (u.abs() + NEAR_ZERO) ** -art_lambda)
