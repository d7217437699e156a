"""From the sums of one pass to the next threshold, for many rows at once."""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels._triton_reduce import any_row

_CROWD = tl.constexpr(4.0)  # scores so near to b (in τ) make a smooth slope
_MODEL_TURNS = tl.constexpr(40)


@triton.jit
def log_excess(extra, residual, lower, upper):
    """log of what is above k over what is below: 0 at the root, and nearly linear in b."""
    more, less = tl.maximum(extra, 0.0) + lower, tl.maximum(-extra, 0.0) + upper
    far = tl.log(more) - tl.log(less)
    ratio = residual / less
    return tl.where(tl.abs(far) < 0.1, ratio / (1.0 + 0.5 * ratio), far)


@triton.jit
def exponential_step(extra, lower, upper):
    """Both tail sums as exponentials in b: the closed form of LapSum, until b passes a score."""
    root = tl.sqrt(extra * extra + 4.0 * lower * upper)
    ratio = tl.where(extra > 0.0, (extra + root) / (2.0 * upper), 2.0 * lower / (root - extra))
    balanced = 0.5 * (tl.log(lower) - tl.log(upper))
    return tl.where(extra == 0.0, balanced, tl.log(ratio))


@triton.jit
def change_rate(lower, upper, pdf, lower_near, upper_near, density: tl.constexpr):
    """How fast things change with b: a step is short when step · rate is."""
    rate = pdf / (lower + upper)
    if density == law.CAUCHY:
        return tl.maximum(rate, 1.0 / (1.0 + tl.minimum(lower_near, upper_near)))
    else:
        return rate


@triton.jit
def smooth_step(
    extra,
    lower,
    upper,
    lower_pdf,
    upper_pdf,
    lower_drop,
    upper_drop,
    lower_near,
    upper_near,
    residual_before,
    step_before,
    density: tl.constexpr,
):
    """Newton's or Halley's step in units of τ, and whether it is too long to be believed."""
    residual, pdf = extra + (lower - upper), lower_pdf + upper_pdf
    newton = residual / pdf
    if density == law.UNIFORM:  # linear in pieces
        return newton, ~(tl.abs(log_excess(extra, residual, lower, upper)) < 2.0)
    else:
        rate = change_rate(lower, upper, pdf, lower_near, upper_near, density)
        correction = 0.5 * newton / pdf * (lower_drop - upper_drop)
        near = newton / (1.0 - correction)
        far = ~((tl.abs(near) * rate < 0.5) & (tl.abs(correction) < 0.5))
        if density == law.CAUCHY:  # a crowd ahead makes a smooth slope, no single steps
            ahead = tl.where(residual > 0.0, upper_near, lower_near)
            crowded = far & (ahead < _CROWD) & (pdf > 0.05)
            secant = residual / (residual_before - residual) * step_before
            smooth = tl.where(secant * residual > 0.0, secant, newton)
            near, far = tl.where(crowded, smooth, near), far & ~crowded
        return near, far


@triton.jit
def far_step(
    extra,
    lower,
    upper,
    lower_pdf,
    upper_pdf,
    lower_drop,
    upper_drop,
    lower_near,
    upper_near,
    left,
    right,
    wanted,
    density: tl.constexpr,
):
    """The root of a model that fits far away too, in units of τ; ±inf if it is out of bounds.

    It is solved in logarithms, where it is nearly linear, by Newton's steps inside the bracket.
    """
    residual, pdf = extra + (lower - upper), lower_pdf + upper_pdf
    rate = change_rate(lower, upper, pdf, lower_near, upper_near, density)
    surplus, deficit = tl.maximum(extra, 0.0), tl.maximum(-extra, 0.0)
    l_height, l_rate, l_bend, l_weight = _model(lower, lower_pdf, lower_drop, lower_near, density)
    u_height, u_rate, u_bend, u_weight = _model(upper, upper_pdf, upper_drop, upper_near, density)
    t, low, high, turn = tl.zeros_like(extra), left, right, 0
    excess = t + float("inf")
    unfinished = wanted
    while any_row(unfinished) & (turn < _MODEL_TURNS):
        more, fall = _model_at(t, l_height, l_rate, l_bend, lower_near, l_weight, density)
        less, rise = _model_at(-t, u_height, u_rate, u_bend, upper_near, u_weight, density)
        more, less = more + surplus, less + deficit
        excess = tl.log(more) - tl.log(less)
        low, high = tl.where(excess > 0.0, t, low), tl.where(excess < 0.0, t, high)
        goal = t + excess / (fall / more + rise / less)
        goal = tl.where((goal > low) & (goal < high), goal, 0.5 * (low + high))
        unfinished = wanted & ((tl.abs(goal - t) * rate > 1e-3) | (tl.abs(excess) > 0.05))
        t = goal
        turn += 1
    newton = residual / pdf
    if density == law.UNIFORM:
        return tl.where(tl.abs(excess) < 0.1, t, newton)
    else:
        behind = tl.where(newton < 0.0, -float("inf"), float("inf"))
        return tl.where(tl.abs(excess) < 0.1, t, behind)


# How the tail sum of one side continues when b moves away from it by t: as a power of the distance,
# S (1 + eλt)^(-1/e), with the e and λ that give it its first and second derivative. e = 0 is an
# exponential, e = 1 the hyperbola of Cauchy's tails, e = -1/2 the parabola at the end of a uniform
# row. Heavy tails hide the nearest score behind the crowd of the others: it is taken out of the
# sums and counted exactly.


@triton.jit
def _model(tail, pdf, drop, near, density: tl.constexpr):
    weight = tl.zeros_like(tail) + 1.0
    if density == law.CAUCHY:
        own_tail, own_pdf, own_drop = law.values(near, density)
        # ties count together: they show in Σ -f', which falls fastest with distance
        ties = drop / own_drop
        whole = tl.floor(ties + 0.5)
        weight = tl.where(tl.abs(ties - whole) < 1e-3, tl.maximum(whole, 1.0), 1.0)
        tail = tl.maximum(tail - weight * own_tail, 0.0)
        pdf = tl.maximum(pdf - weight * own_pdf, 0.0)
        drop = tl.maximum(drop - weight * own_drop, 0.0)
    rate = tl.where(tail > 0.0, pdf / tail, 0.0)
    if density == law.UNIFORM:  # `drop` is Σ F²: are all at one place, or spread to the end?
        bend = 1.5 * (drop / tail * rate - 1.0) - 1.0
    else:
        bend = drop / pdf / rate - 1.0
    bend = tl.where(bend == bend, bend, 0.0)
    return tail, rate, tl.minimum(tl.maximum(bend, -1.0), 9.0), weight


@triton.jit
def _model_at(t, height, rate, bend, near, weight, density: tl.constexpr):
    """The sum and minus its slope."""
    straight = tl.abs(bend) < 1e-6
    base = 1.0 + bend * rate * t
    exponent = tl.log(base) / tl.where(straight, 1.0, bend)
    value = height * tl.exp(-tl.where(straight, rate * t, exponent))
    beyond = tl.where(bend > 0.0, float("inf"), 0.0)
    value = tl.where(base > 0.0, value, beyond)
    slope = tl.where(base > 0.0, value * rate / base, 0.0)
    if density == law.CAUCHY:
        a = near + t
        tail, pdf, _ = law.values(a, density)
        value += weight * tl.where(a < 0.0, 1.0 - tail, tail)
        slope += weight * pdf
    return value, slope
