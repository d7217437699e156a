"""Exactly k scores above b, and tails that underflow, in a tile of rows.

Any b in the gap between two scores fits the sum, but only one fits log p: where the logarithms of
the two tail sums are equal.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels._triton_reduce import any_row, total
from softorder.kernels.threshold.triton_sums import distance, load_chunk


@triton.jit
def balance(
    x, scores, n, centre, rest, scale, tau, wanted, density: tl.constexpr, streamed: tl.constexpr
):
    """The edge below the gap that holds b, how far above it b belongs, and the number of passes."""
    near: tl.constexpr = 1e-10 if x.dtype == tl.float64 else 1e-6
    low, high = _edges(x, scores, n, centre, rest, scale, density, streamed)
    gap = high - low
    if density == law.CAUCHY:  # hyperbolas have no unit: in a larger one no square overflows
        tau = tl.maximum(tau, 1e-15 * gap)
    at, passes, turn = 0.5 * gap, wanted.to(tl.int32), 0
    if density == law.UNIFORM:  # any b in the gap will do
        return low, 0.5 * (gap - tau), passes
    else:
        unfinished = wanted
        while any_row(unfinished) & (turn < 8):
            passes += unfinished.to(tl.int32)
            lower, upper = at / tau, (gap - at) / tau
            lower_sum, upper_sum, lower_slope, upper_slope = _weights(
                x, scores, n, low, high, lower, upper, tau, density, streamed
            )
            excess = law.log_ratio(upper, lower - upper, density) + tl.log(lower_sum / upper_sum)
            if density == law.CAUCHY:  # A/at and B/(gap - at) balance at once
                ratio = tl.exp(excess) * at / (gap - at)
                there = gap * (ratio / (1.0 + ratio))
            else:
                rates = lower_slope / lower_sum + upper_slope / upper_sum
                there = at + excess / rates * tau
            there = tl.where(there == there, tl.minimum(tl.maximum(there, 0.0), gap), at)
            unfinished = unfinished & (tl.abs(there - at) > near * gap)
            at = there
            turn += 1
        return low, at, passes


@triton.jit
def _edges(x, scores, n, centre, rest, scale, density: tl.constexpr, streamed: tl.constexpr):
    """The scores next to b."""
    if streamed:
        width: tl.constexpr = x.shape[1]
        low, high = centre * 0.0 - float("inf"), centre * 0.0 + float("inf")
        for begin in range(0, n, width):
            part = load_chunk(scores, begin, n, width, x.dtype)
            part_low, part_high = _edges_of_tile(part, centre, rest, scale, density)
            low, high = tl.maximum(low, part_low), tl.minimum(high, part_high)
        return low, high
    else:
        return _edges_of_tile(x, centre, rest, scale, density)


@triton.jit
def _edges_of_tile(x, centre, rest, scale, density: tl.constexpr):
    below = distance(x, centre, rest, scale) < law.middle(density)
    low = tl.max(tl.where(below, x, -float("inf")), 1)
    return low, tl.min(tl.where(below, float("inf"), x), 1)


@triton.jit
def _weights(
    x, scores, n, low, high, lower, upper, tau, density: tl.constexpr, streamed: tl.constexpr
):
    """Both tail sums beside the tail of the edge, and minus their slopes."""
    if streamed:
        width: tl.constexpr = x.shape[1]
        zero = low.to(tl.float64) * 0.0
        lower_sum, upper_sum, lower_slope, upper_slope = zero, zero, zero, zero
        for begin in range(0, n, width):
            part = load_chunk(scores, begin, n, width, x.dtype)
            sums = _weights_of_tile(part, low, high, lower, upper, tau, density)
            lower_sum += sums[0]
            upper_sum += sums[1]
            lower_slope += sums[2]
            upper_slope += sums[3]
        return (
            lower_sum.to(x.dtype),
            upper_sum.to(x.dtype),
            lower_slope.to(x.dtype),
            upper_slope.to(x.dtype),
        )
    else:
        return _weights_of_tile(x, low, high, lower, upper, tau, density)


@triton.jit
def _weights_of_tile(x, low, high, lower, upper, tau, density: tl.constexpr):
    below = x <= low[:, None]
    beyond = tl.where(below, low[:, None] - x, x - high[:, None]) / tau[:, None]
    nearest = tl.where(below, lower[:, None], upper[:, None])
    weight = tl.exp(law.log_ratio(nearest, beyond, density))
    weight = tl.where(weight > 0.0, weight, 0.0)  # no NaN of infinite scores
    slope = tl.where(weight > 0.0, weight * law.rate(nearest + beyond, density), 0.0)
    return total(below, weight), total(~below, weight), total(below, slope), total(~below, slope)
