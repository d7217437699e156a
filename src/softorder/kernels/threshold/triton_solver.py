"""Solves Σ F((x - b)/τ) = k for a tile of rows.

The plan is that of solver.py: a guess from the moments of a row, steps from pass to pass, and where
they fail a selection that gives a bracket. Everything is in the dtype of the scores: b is the
unevaluated sum of two numbers, and k a whole number and a part between -1/2 and 1/2.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels._triton_reduce import any_row
from softorder.kernels.threshold.triton_gap import balance
from softorder.kernels.threshold.triton_select import select
from softorder.kernels.threshold.triton_steps import (
    change_rate,
    exponential_step,
    far_step,
    log_excess,
    smooth_step,
)
from softorder.kernels.threshold.triton_sums import absolute_deviation, look, sweep

_MOST_TURNS = tl.constexpr(64)


@triton.jit
def solve(
    x,
    scores,
    n,
    k,
    temperature,
    density: tl.constexpr,
    balanced: tl.constexpr,
    streamed: tl.constexpr,
):
    """b = centre + rest of every row, and the number of passes. Scores of -inf take no part.

    x has the rows, or their first scores, filled up with -inf; `scores` points to the first of the
    n scores of each.

    Unless it has to be `balanced`, any b will do in a gap where nobody has a tail to speak of.
    """
    infinite = float("inf")
    tau, scale = in_dtype(temperature, x.dtype)
    # ---- a first look
    certain, valid, nans, sums = look(x, scores, n, streamed)
    has_nan = nans > 0
    rank = k - certain.to(tl.float64)
    number = (valid - certain).to(tl.float64)
    rooted = ~has_nan & (rank > 0.0) & (rank < number)
    rank = tl.where(rooted, rank, 0.5 * number)
    whole, part, rest_of_one, base, fraction = split_rank(rank, x.dtype)
    base += certain
    left_over = number - rank
    few = tl.minimum(rank, left_over).to(x.dtype)
    mean = sums / number.to(x.dtype)
    deviation = 1.25 * absolute_deviation(x, scores, n, mean, streamed) / number.to(x.dtype)
    share = few / number.to(x.dtype)
    by = guess(share, rank < left_over, deviation, tau, density)
    expected, noise = hard_guess(share, few, rank < left_over, mean, deviation)
    high, low = two_sum(mean, by)
    passes = tl.where(rooted, 1, 0)
    # ---- what the loop carries
    zero = tl.zeros_like(tau)
    left, right = zero - infinite, zero + infinite
    left_excess, right_excess = zero + infinite, zero - infinite
    residual, previous, older, width = zero + float("nan"), right, right, right
    selected = tau != tau
    active = rooted
    lost = active & ~(tl.abs(high) < infinite)
    if (density != law.CAUCHY) & (density != law.UNIFORM):
        lost = lost | (active & (deviation > tl.minimum(few, 16.0) * tau))
    turn = 0
    while any_row(active) & (turn < _MOST_TURNS):
        if any_row(lost):
            # b where the root would be if only the nearest scores counted, and a bracket that holds
            # whatever the others add: x_(⌊k⌋+1) - ζτ <= b <= x_(⌈k⌉) + ζ'τ
            value, before, taken = select(
                x, scores, n, whole, certain, lost, expected - noise, expected + noise, streamed
            )
            passes += tl.where(lost, taken, 0)
            offset, from_left, from_right = bracket(
                before - value, whole, part, rest_of_one, left_over.to(x.dtype), tau, density
            )
            new_high, new_low = two_sum(value, offset)
            high, low = tl.where(lost, new_high, high), tl.where(lost, new_low, low)
            left, right = tl.where(lost, from_left, left), tl.where(lost, from_right, right)
            left_excess = tl.where(lost, infinite, left_excess)
            right_excess = tl.where(lost, -infinite, right_excess)
            by, residual = tl.where(lost, 0.0, by), tl.where(lost, float("nan"), residual)
            previous, older = tl.where(lost, infinite, previous), tl.where(lost, infinite, older)
            width = tl.where(lost, right - left, width)
            selected = selected | lost
        # ---- one pass
        (
            above,
            lower,
            upper,
            lower_pdf,
            upper_pdf,
            lower_drop,
            upper_drop,
            lower_near,
            upper_near,
        ) = sweep(x, scores, n, high, low, scale, density, streamed)
        passes += active.to(tl.int32)
        # ---- where the root is, judged from the sums
        extra = (above - base).to(x.dtype) - fraction
        now, pdf = extra + (lower - upper), lower_pdf + upper_pdf
        excess = log_excess(extra, now, lower, upper)
        up, down = (excess >= 0.0) & (left <= 0.0), (excess <= 0.0) & (right >= 0.0)
        left, left_excess = tl.where(up, 0.0, left), tl.where(up, excess, left_excess)
        right, right_excess = tl.where(down, 0.0, right), tl.where(down, excess, right_excess)
        if density == law.LAPLACE:
            step = exponential_step(extra, lower, upper)
        else:
            step, far = smooth_step(
                extra,
                lower,
                upper,
                lower_pdf,
                upper_pdf,
                lower_drop,
                upper_drop,
                lower_near,
                upper_near,
                residual,
                by / tau,
                density,
            )
            if any_row(active & far):
                model = far_step(
                    extra,
                    lower,
                    upper,
                    lower_pdf,
                    upper_pdf,
                    lower_drop,
                    upper_drop,
                    lower_near,
                    upper_near,
                    left / tau,
                    right / tau,
                    active & far,
                    density,
                )
                step = tl.where(far, model, step)
        # ---- is it the last step, and does it lead anywhere?
        gap = active & in_gap(extra, lower, upper, lower_pdf, upper_pdf, density)
        rate = change_rate(lower, upper, pdf, lower_near, upper_near, density)
        wide: tl.constexpr = x.dtype == tl.float64
        enough = is_settled(now, excess, lower, upper_pdf, step * rate, n, wide, density)
        settled = active & enough & ~gap
        by = step * tau
        before = tl.where(selected, tl.maximum(previous, older), previous)
        span = right - left
        progress = (tl.abs(excess) < 0.5 * before) | (span < 0.5 * width) | (before == infinite)
        older, previous, width, residual = previous, tl.abs(excess), span, now
        beyond = (by <= left) | (by >= right)
        known = (by == by) & selected
        # the ends of a bracket are bounds: a root that seems to be behind one is close to it
        by = tl.where(
            beyond & known & progress & ~settled, 0.9 * tl.where(by < 0.0, left, right), by
        )
        stuck = ~progress | (beyond & ~known) | (by != by)
        stuck = stuck | goes_back(by, left, right, left_excess, right_excess, excess, width)
        stuck = stuck | (is_lost(extra, lower, upper) & ~selected)
        stuck = stuck & ~settled
        # a bracket that is found within τ is as good as one by selection
        selected = selected | (stuck & (span <= tau))
        previous = tl.where(stuck, infinite, previous)
        by = tl.where(stuck, between(left, right, left_excess, right_excess, turn), by)
        lost = active & stuck & ~selected & ~gap
        # ---- move
        moves = active & ~lost & ~gap
        by = tl.where(moves, by, 0.0)
        high, low = move(high, low, by)
        left, right = left - by, right - by
        unbalanced = gap & (balanced | (lower + upper > 1e-18))
        if any_row(unbalanced):
            edge, at, taken = balance(
                x, scores, n, high, low, scale, tau, unbalanced, density, streamed
            )
            new_high, new_low = two_sum(edge, at)
            high, low = tl.where(unbalanced, new_high, high), tl.where(unbalanced, new_low, low)
            passes += tl.where(unbalanced, taken, 0)
        active = active & ~settled & ~gap
        turn += 1
    centre, rest = without_root(k, tau, certain, valid, has_nan, density)
    return tl.where(rooted, high, centre), tl.where(rooted, low, rest), passes


@triton.jit
def in_dtype(temperature, dtype: tl.constexpr):
    """τ and 1/τ, both finite and not 0."""
    most: tl.constexpr = 1.7e308 if dtype == tl.float64 else 3.4e38
    scale = tl.minimum(1.0 / temperature, most).to(dtype)
    return tl.minimum(tl.maximum(temperature, 1.0 / most), most).to(dtype), scale


@triton.jit
def split_rank(rank, dtype: tl.constexpr):
    """⌊rank⌋, what is left of it, what that leaves of 1; and the nearest whole number and the rest.

    The parts keep their relative accuracy in the dtype of the scores.
    """
    whole = tl.floor(rank)
    base = tl.floor(rank + 0.5)
    part = rank - whole
    return (
        whole.to(tl.int32),
        part.to(dtype),
        (1.0 - part).to(dtype),
        base.to(tl.int32),
        (rank - base).to(dtype),
    )


@triton.jit
def guess(share, high, deviation, tau, density: tl.constexpr):
    """How far b is from the mean: the smoothed row as a sum of two variables, bell and F.

    Their quantiles add like errors; but far out in an exponential tail of F the bell only adds its
    cumulant. `share` is k/n, or 1 - k/n where b is not `high`.
    """
    bell = deviation * law.normal_quantile(share)
    own = tau * tl.abs(law.quantile_of_tail(share, density) - law.middle(density))
    size = tl.sqrt(bell * bell + own * own)
    if (density != law.CAUCHY) & (density != law.UNIFORM):
        cumulant = 0.5 * deviation / tau * deviation
        size = tl.where(own > cumulant + deviation, own + cumulant, size)
    if density == law.UNIFORM:
        size = tl.where(tau > 3.0 * deviation, wide_distance(share, deviation, tau), size)
    return tl.where(high, size, -size) - law.middle(density) * tau


@triton.jit
def hard_guess(share, few, high, mean, deviation):
    """Where a bell-shaped row has its hard threshold, and how far off that is at the most."""
    bell = law.normal_quantile(share)
    _, pdf, _ = law.values(bell, law.NORMAL)
    noise = 3.0 * deviation * share / (pdf * tl.sqrt(few))
    return mean + deviation * tl.where(high, bell, -bell), noise


@triton.jit
def wide_distance(share, deviation, tau):
    """The same for the uniform density with τ much larger than the row's deviation.

    Only one end of its support is among the scores, if any, and E(x - b)+ = τ k/n for a normal x.
    """
    mass = tau * share / deviation
    t = -mass
    for _ in tl.static_range(6):  # Newton's steps on the logarithm of E(z - t)+
        tail, pdf, _ = law.values(t, law.NORMAL)
        tail = tl.where(t < 0.0, 1.0 - tail, tail)
        loss = pdf - t * tail
        t += tl.log(loss / mass) * loss / tail
    return tl.where(mass < 4.0, deviation * t, -tau * share) + 0.5 * tau


@triton.jit
def bracket(width, whole, part, rest_of_one, left_over, tau, density: tl.constexpr):
    """Where b would be if only the next scores counted, from the selected one; and its bounds."""
    single = part == 0.0
    width = tl.where(single, width, 0.0)
    middle = law.middle(density)
    share = tl.where(single, 0.5, tl.minimum(part, rest_of_one))
    below = part < 0.5
    low_share = tl.minimum(rest_of_one / (whole + 1).to(tau.dtype), 0.5)
    beyond = tl.floor(left_over) + 1.0
    high_share = tl.minimum(tl.where(single, 1.0, part) / beyond, 0.5)
    own = law.quantile_of_tail(share, density)
    low_quantile = law.quantile_of_tail(low_share, density)
    high_quantile = law.quantile_of_tail(high_share, density)
    if density == law.UNIFORM:
        own = tl.where(below, -own, own - 1.0)
        low_quantile, high_quantile = 1.0 - low_quantile, -high_quantile
    else:
        own = tl.where(below, own, -own)
    offset = tl.where(single, 0.5 * width - middle * tau, tau * own)
    # a root may be at the very end of its bracket, and rounding puts it outside
    left = -tau * (low_quantile + 1e-3 * (1.0 + tl.abs(low_quantile)))
    right = width + tau * (high_quantile + 1e-3 * (1.0 + tl.abs(high_quantile)))
    return offset, left - offset, right - offset


@triton.jit
def in_gap(extra, lower, upper, lower_pdf, upper_pdf, density: tl.constexpr):
    """Whether exactly k scores are above b, and what the others add is too small to be told."""
    if density == law.UNIFORM:
        return (extra == 0.0) & (lower == 0.0) & (upper == 0.0)
    else:
        nothing = (lower_pdf == 0.0) | (upper_pdf == 0.0)
        return (extra == 0.0) & nothing & (lower + upper < 0.25)


@triton.jit
def is_settled(
    residual, excess, lower, upper_pdf, size, n, wide: tl.constexpr, density: tl.constexpr
):
    """Whether the sums agree with k, or what a step so short leaves does not matter."""
    if density == law.UNIFORM:  # as far as rounding lets them
        epsilon: tl.constexpr = 2.2e-16 if wide else 1.2e-7
        rounding = (8.0 + 0.25 * tl.sqrt(tl.zeros_like(residual) + n)) * epsilon
        rounding = tl.minimum(rounding, 1e-6)
        return tl.abs(residual) <= rounding * (lower + upper_pdf)
    else:
        second_order: tl.constexpr = 1e-8 if wide else 1e-4
        third_order: tl.constexpr = 1e-5 if wide else 1e-2
        limit: tl.constexpr = second_order if density == law.LAPLACE else third_order
        # where the pdf underflows, the rate says nothing
        return (tl.abs(size) <= limit) & (tl.abs(excess) < 0.5)


@triton.jit
def is_lost(extra, lower, upper):
    """Scores have to pass b, but none is near: no model can tell how far away they are."""
    many = tl.abs(extra)
    return (many >= 1.0) & (lower + upper < 0.1 * many)


@triton.jit
def goes_back(by, left, right, left_excess, right_excess, excess, width):
    """Whether the next place is almost the other end of the bracket, known to be no better."""
    end = tl.where(excess > 0.0, right, left)
    there = tl.abs(tl.where(excess > 0.0, right_excess, left_excess))
    near = tl.abs(end - by) < 0.02 * width
    return near & (there < float("inf")) & (there > 0.1 * tl.abs(excess))


@triton.jit
def between(left, right, left_excess, right_excess, turn):
    """A place inside the bracket: the false position and the middle by turns."""
    infinite = float("inf")
    share = left_excess / (left_excess - right_excess)
    known = (tl.abs(left_excess) < infinite) & (tl.abs(right_excess) < infinite) & (turn % 3 > 0)
    share = tl.where(known, tl.minimum(tl.maximum(share, 0.05), 0.95), 0.5)
    return left + (right - left) * share


@triton.jit
def two_sum(a, b):
    """a + b, rounded, and what the rounding lost."""
    sum = a + b
    part = sum - a
    return sum, (a - (sum - part)) + (b - part)


@triton.jit
def move(high, low, by):
    """b = high + low, moved."""
    sum, error = two_sum(high, by)
    tail = low + error
    high = sum + tail
    return high, tail - (high - sum)


@triton.jit
def without_root(k, tau, certain, valid, has_nan, density: tl.constexpr):
    """Thresholds that are not finite numbers: the table of contract.py."""
    infinite = float("inf")
    zero = tl.zeros_like(tau)
    many = certain.to(tl.float64)
    share = tl.where((k > 0.0) & (k < many), k / tl.where(many > 0.0, many, 1.0), 0.5).to(tau.dtype)
    centre, rest = zero + infinite, -tau * law.quantile(share, density)
    rest = tl.where(k == many, -infinite, rest)
    all_in = k >= valid.to(tl.float64)
    centre, rest = tl.where(all_in, -infinite, centre), tl.where(all_in, 0.0, rest)
    none = k <= 0.0
    centre, rest = tl.where(none, infinite, centre), tl.where(none, infinite, rest)
    return tl.where(has_nan, float("nan"), centre), tl.where(has_nan, 0.0, rest)
