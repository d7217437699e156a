"""The steps of soft comparators as Triton functions, by their numbers."""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels.network import comparators

LOGISTIC = tl.constexpr(0)  # in the order of comparators.COMPILED
CAUCHY = tl.constexpr(1)
RECIPROCAL = tl.constexpr(2)
OPTIMAL = tl.constexpr(3)
GAUSSIAN = tl.constexpr(4)
PHI_QUARTER = tl.constexpr(5)  # λ = 1/4; else 1/2
_NEAR_ZERO = tl.constexpr(comparators.NEAR_ZERO)


@triton.jit
def tail_and_slope(a, comparator: tl.constexpr):
    """F(-a) and f(a) for a >= 0."""
    if comparator == LOGISTIC:
        tail, slope, _ = law.values(a, law.LOGISTIC)
        return tail, slope
    elif comparator == CAUCHY:
        tail, slope, _ = law.values(a, law.CAUCHY)
        return tail, slope
    elif comparator == GAUSSIAN:
        tail, slope, _ = law.values(a, law.NORMAL)
        return tail, slope
    elif comparator == RECIPROCAL:
        inner = 1.0 / (1.0 + 2.0 * a)
        return 0.5 * inner, inner * inner
    elif comparator == OPTIMAL:
        near = a <= 0.25
        quarter = 0.25 / tl.where(near, 1.0, a)
        slope = tl.where(near, 1.0, quarter * quarter)
        return tl.where(near, 0.5 - a, 0.25 * quarter), slope
    else:
        r = a + _NEAR_ZERO
        bend: tl.constexpr = 0.25 if comparator == PHI_QUARTER else 0.5
        shrunk = 1.0 / (tl.sqrt(tl.sqrt(r)) if comparator == PHI_QUARTER else tl.sqrt(r))
        tail, slope, _ = law.values(a * shrunk, law.LOGISTIC)
        return tail, slope * shrunk * (1.0 - bend * a / r)
