"""Parts of the kernels for sorted rows: tiles of rows, sums that decay along them, searches.

A tile has rows side by side, of which `inside` exist. Everything is summed in float64, as on the
CPU: a sum over many scores is no better than its parts.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

FAR = tl.constexpr(800.0)  # e^-d is 0 from here on, in float64


# ---- rows ---------------------------------------------------------------------------------------


@triton.jit
def rows_of_program(rows, height: tl.constexpr):
    """The rows of this program, and which of them exist."""
    row = tl.program_id(0) * height + tl.arange(0, height)
    return row, row < rows


@triton.jit
def count_of(count, stride, row, inside, n, counted: tl.constexpr):
    """How many entries of every row take part: all, or as many as `count` says."""
    if counted:
        given = tl.load(count + row * stride, mask=inside, other=0)
        return tl.minimum(tl.maximum(given, 0), n).to(tl.int32)
    else:
        return tl.where(inside, n, 0).to(tl.int32)


@triton.jit
def plane(rows, n):
    """How many entries a matrix has, which may be more than an int32 can say."""
    return tl.full((), 1, tl.int64) * rows * n


@triton.jit
def load(first, column, where):
    """Entries of rows that begin at `first`, in float64; 0 elsewhere."""
    return tl.load(first[:, None] + column, mask=where, other=0.0).to(tl.float64)


@triton.jit
def load_one(first, place, where):
    """One entry of every row."""
    return tl.load(first + place, mask=where, other=0.0).to(tl.float64)


@triton.jit
def difference(x, x_rest, y, y_rest):
    """x - y of unevaluated sums: near each other, no bit is lost."""
    return ((x - y) + x_rest) - y_rest


@triton.jit
def inverse(temperature):
    """1/τ, always finite."""
    return tl.minimum(1.0 / temperature, 1.7e308)


# ---- sums that decay ----------------------------------------------------------------------------


@triton.jit
def _after(decay, total, next_decay, next_total):
    return decay * next_decay, total * next_decay + next_total


@triton.jit
def _after_with_moment(
    decay, distance, total, moment, next_decay, next_distance, next_total, next_moment
):
    moved = next_decay * (moment + next_distance * total)
    return (
        decay * next_decay,
        distance + next_distance,
        total * next_decay + next_total,
        moved + next_moment,
    )


@triton.jit
def scan(d, w, backward: tl.constexpr):
    """Σ w e^-d along a tile, d being the distance to the entry before; and e^-d from its start.

    Factors e^-d <= 1 of neighbours are all that is multiplied: nothing overflows. A tile is short
    enough for their roundings, and sums before it are moved to its end in one step (`moved`).
    """
    return tl.associative_scan((tl.exp(-d), w), 1, _after, reverse=backward)


@triton.jit
def scan_moments(d, w, backward: tl.constexpr):
    """e^-d from the start of a tile, that d, Σ w e^-d and Σ w d e^-d."""
    nothing = tl.zeros_like(w)
    return tl.associative_scan((tl.exp(-d), d, w, nothing), 1, _after_with_moment, reverse=backward)


@triton.jit
def at_column(values, column, place):
    """One entry of every row of a tile."""
    return tl.sum(tl.where(column == place[:, None], values, 0.0), 1)


# ---- searches -----------------------------------------------------------------------------------


@triton.jit
def places_below(
    first, rest, t, t_rest, count, steps, where, has_rest: tl.constexpr, right: tl.constexpr
):
    """How many of the first entries of a row are below t, or not above it (right)."""
    low = tl.zeros_like(t).to(tl.int32)
    high = low + count[:, None]
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = (low < high) & where
        x = load(first, middle, open_)
        beside = load(rest, middle, open_) if has_rest else 0.0
        distance = difference(t, t_rest, x, beside)
        below = open_ & ((distance >= 0.0) if right else (distance > 0.0))
        low = tl.where(below, middle + 1, low)
        high = tl.where(below, high, tl.where(open_, middle, high))
    return low
