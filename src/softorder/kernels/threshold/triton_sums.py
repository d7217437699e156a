"""What one pass over rows learns about them, for rows that are on chip and for longer ones.

A tile x holds whole rows, filled up with -inf, or the first scores of longer rows (`streamed`).
These are read again in every pass, from caches as far as they fit there.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels._triton_reduce import count, total


@triton.jit
def load_chunk(scores, begin, n, width: tl.constexpr, dtype: tl.constexpr):
    """The scores from `begin` on of rows that start at these pointers."""
    column = begin + tl.arange(0, width)[None, :]
    return tl.load(scores[:, None] + column, mask=column < n, other=-float("inf")).to(dtype)


@triton.jit
def distance(x, centre, rest, scale):
    """u = (x - b)/τ, for a finite b = centre + rest."""
    return ((x - centre[:, None]) - rest[:, None]) * scale[:, None]


# ---- Σ F((x - b)/τ): below and above b apart, as tails, so that the residual keeps its relative
# accuracy when almost every p is 0 or 1


@triton.jit
def sweep(x, scores, n, centre, rest, scale, density: tl.constexpr, streamed: tl.constexpr):
    """How many are above b; Σ F(-|u|), Σ f(u), Σ -f'(|u|) and the least |u|, below and above."""
    if streamed:
        width: tl.constexpr = x.shape[1]
        zero = tl.zeros_like(centre).to(tl.float64)
        above = zero.to(tl.int32)
        lower, upper, lower_pdf, upper_pdf = zero, zero, zero, zero
        lower_drop, upper_drop = zero, zero
        lower_near, upper_near = centre * 0.0 + float("inf"), centre * 0.0 + float("inf")
        for begin in range(0, n, width):
            u = distance(load_chunk(scores, begin, n, width, x.dtype), centre, rest, scale)
            part = sweep_tile(u, density)
            above += part[0]
            lower += part[1]
            upper += part[2]
            lower_pdf += part[3]
            upper_pdf += part[4]
            lower_drop += part[5]
            upper_drop += part[6]
            lower_near = tl.minimum(lower_near, part[7])
            upper_near = tl.minimum(upper_near, part[8])
        return (
            above,
            lower.to(x.dtype),
            upper.to(x.dtype),
            lower_pdf.to(x.dtype),
            upper_pdf.to(x.dtype),
            lower_drop.to(x.dtype),
            upper_drop.to(x.dtype),
            lower_near,
            upper_near,
        )
    else:
        return sweep_tile(distance(x, centre, rest, scale), density)


@triton.jit
def sweep_tile(u, density: tl.constexpr):
    below = u < law.middle(density)
    above = count(~below & (u == u))
    tail, pdf, drop = law.values(u, density)
    lower, upper = total(below, tail), total(~below, tail)
    if density == law.LAPLACE:
        return above, lower, upper, lower, upper, lower, upper, lower, upper
    else:
        lower_pdf, upper_pdf = total(below, pdf), total(~below, pdf)
        lower_drop, upper_drop = total(below, drop), total(~below, drop)
        if density == law.CAUCHY:  # whose heavy tails hide the nearest score
            infinite = float("inf")
            lower_near = tl.min(tl.where(below, -u, infinite), 1)
            upper_near = tl.min(tl.where(below, infinite, u), 1)
        else:
            lower_near, upper_near = lower, upper  # nobody asks
        return (
            above,
            lower,
            upper,
            lower_pdf,
            upper_pdf,
            lower_drop,
            upper_drop,
            lower_near,
            upper_near,
        )


# ---- a first look -------------------------------------------------------------------------------


@triton.jit
def look(x, scores, n, streamed: tl.constexpr):
    """How many are +inf, not -inf, and NaN; and the sum of the finite ones."""
    if streamed:
        width: tl.constexpr = x.shape[1]
        sums = tl.sum(x, 1).to(tl.float64) * 0.0
        sums = tl.where(sums == sums, sums, 0.0)
        certain, valid, nans = sums.to(tl.int32), sums.to(tl.int32), sums.to(tl.int32)
        for begin in range(0, n, width):
            part = _look_tile(load_chunk(scores, begin, n, width, x.dtype))
            certain += part[0]
            valid += part[1]
            nans += part[2]
            sums += part[3]
        return certain, valid, nans, sums.to(x.dtype)
    else:
        return _look_tile(x)


@triton.jit
def _look_tile(x):
    infinite = float("inf")
    finite = tl.abs(x) < infinite
    return count(x == infinite), count(x != -infinite), count(x != x), total(finite, x)


@triton.jit
def absolute_deviation(x, scores, n, mean, streamed: tl.constexpr):
    """Σ |x - mean| over the finite scores: unlike a variance it overflows late."""
    if streamed:
        width: tl.constexpr = x.shape[1]
        sums = mean.to(tl.float64) * 0.0
        for begin in range(0, n, width):
            sums += _deviation_tile(load_chunk(scores, begin, n, width, x.dtype), mean)
        return sums.to(x.dtype)
    else:
        return _deviation_tile(x, mean)


@triton.jit
def _deviation_tile(x, mean):
    return total(tl.abs(x) < float("inf"), tl.abs(x - mean[:, None]))
