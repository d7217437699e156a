"""Kernels for Laplace ranks and their gradients, from sorted rows: sum, complete, put back.

A program takes whole rows, block by block: the sums from the left first, then those from the right.
Infinities and NaN stand where torch.sort leaves them: -inf, the finite scores, +inf, NaN.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels.fsum.triton_laplace import block
from softorder.kernels.fsum.triton_scan import inverse, load, load_one, rows_of_program


@triton.jit
def rank_forward(
    values,
    order,
    temperature,
    ranks,
    kept_order,
    sums,
    rows,
    n,
    steps,
    temperature_stride,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    streamed: tl.constexpr,
):
    """Ranks at the places of the scores; and the order once more, in int32."""
    row, inside = rows_of_program(rows, height)
    scale = inverse(tl.load(temperature + row * temperature_stride, mask=inside, other=1.0))
    base = tl.where(inside, row, 0).to(tl.int64) * n
    absent, finite, spoiled = _counts(values + base, inside, n, steps)
    x, to, present = values + base + absent, sums + base, n - absent
    none = tl.zeros_like(scale)
    own = _ones(0, finite, width)
    left, _, carry, _ = block(x, x, own, finite, scale, 0, none, none, 0, False, False)
    if streamed:
        _keep(to, 0, finite, left)
        for at in range(width, tl.max(finite, 0), width):
            own = _ones(at, finite, width)
            left, _, carry, _ = block(x, x, own, finite, scale, at, carry, none, 0, False, False)
            _keep(to, at, finite, left)
        tl.debug_barrier()  # what is read back may have been written by another thread
    stain = tl.where(spoiled, float("nan"), 0.0)[:, None]
    carry = none
    blocks = (n + width - 1) // width
    for turn in range(blocks):
        at = (blocks - 1 - turn) * width
        own = _ones(at, finite, width)
        right, _, carry, _ = block(x, x, own, finite, scale, at, carry, none, 0, False, True)
        place = at + tl.arange(0, width)[None, :]
        if streamed:
            left = load(to, place, place < finite[:, None])
        soft = (place + 1) + 0.5 * (right - left)
        middle = 0.5 * (finite + present + 1).to(tl.float64)[:, None]  # what is certain shares it
        rank = tl.where(place < finite[:, None], soft, middle)
        rank = (present + 1)[:, None] - rank if descending else rank
        last = 0.5 * (present + 1 + n).to(tl.float64)[:, None]
        rank = tl.where(place < present[:, None], rank, last) + stain
        # the absent ones are behind the others in place, before them in memory
        where = inside[:, None] & (place < n)
        origin = tl.where(
            place < present[:, None], place + absent[:, None], place - present[:, None]
        )
        index = tl.load((order + base)[:, None] + origin, mask=where, other=0)
        tl.store((ranks + base)[:, None] + index, rank, mask=where)
        tl.store((kept_order + base)[:, None] + origin, index, mask=where)


@triton.jit
def rank_backward(
    upstream,
    values,
    order,
    temperature,
    by_scores,
    by_temperature,
    sums,
    rows,
    n,
    steps,
    temperature_stride,
    descending: tl.constexpr,
    heated: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    streamed: tl.constexpr,
):
    """Σ_j (g_i - g_j) f(u)/τ at the places of the scores; if heated, -Σ_i g_i Σ_j u f(u)/τ.

    Half of the sums run from the left, where g_i left_i - Σ g e^-d is one number to keep.
    """
    row, inside = rows_of_program(rows, height)
    scale = inverse(tl.load(temperature + row * temperature_stride, mask=inside, other=1.0))
    base = tl.where(inside, row, 0).to(tl.int64) * n
    absent, finite, spoiled = _counts(values + base, inside, n, steps)
    finite = tl.where(spoiled, 0, finite)
    x, to, origin = values + base + absent, sums + base, order + base + absent
    v = upstream + base
    none = tl.zeros_like(scale)
    heat = none
    part, heat, carry, moments, weighted = _differences(
        x, v, origin, finite, scale, 0, none, none, none, heat, heated, False, width
    )
    if streamed:
        _keep(to, 0, finite, part)
        for at in range(width, tl.max(finite, 0), width):
            part, heat, carry, moments, weighted = _differences(
                x, v, origin, finite, scale, at, carry, moments, weighted, heat, heated, False,
                width,
            )  # fmt: skip
            _keep(to, at, finite, part)
        tl.debug_barrier()  # what is read back may have been written by another thread
    carry, moments, weighted = none, none, none
    half = (-0.5 if descending else 0.5) * scale
    blocks = (n + width - 1) // width
    for turn in range(blocks):
        at = (blocks - 1 - turn) * width
        other, heat, carry, moments, weighted = _differences(
            x, v, origin, finite, scale, at, carry, moments, weighted, heat, heated, True, width
        )
        place = at + tl.arange(0, width)[None, :]
        live = place < finite[:, None]
        if streamed:
            part = load(to, place, live)
        index = tl.load(origin[:, None] + place, mask=live, other=0)
        gradient = half[:, None] * (part + other)
        tl.store((by_scores + base)[:, None] + index, gradient, mask=live)
        # what is not finite has no gradient: `rest` counts it, from behind the finite ones on
        rest = tl.where(place < finite[:, None] + absent[:, None], place - finite[:, None], place)
        dead = inside[:, None] & ~live & (place < n)
        index = tl.load((order + base)[:, None] + rest, mask=dead, other=0)
        tl.store((by_scores + base)[:, None] + index, 0.0 * gradient, mask=dead)
    if heated:
        tl.store(by_temperature + row, -half * heat, mask=inside)


@triton.jit
def _differences(
    x,
    upstream,
    origin,
    n,
    scale,
    begin,
    carry,
    moments,
    weighted,
    heat,
    heated: tl.constexpr,
    backward: tl.constexpr,
    width: tl.constexpr,
):
    """Σ (g_i - g_j) e^-d over one side of every place; what the next block starts with."""
    column = begin + tl.arange(0, width)[None, :]
    where = column < n[:, None]
    index = tl.load(origin[:, None] + column, mask=where, other=0)
    g = load(upstream, index, where)
    moment: tl.constexpr = 1 if heated else 0
    own = _ones(begin, n, width)
    total, first, carry, moments = block(
        x, x, own, n, scale, begin, carry, moments, moment, False, backward
    )
    shared, _, weighted, _ = block(x, x, g, n, scale, begin, weighted, weighted, 0, False, backward)
    if heated:
        share = tl.sum(tl.where(where, g * first, 0.0), 1)
        heat = heat - share if backward else heat + share
    return tl.where(where, g * total - shared, 0.0), heat, carry, moments, weighted


# ---- parts --------------------------------------------------------------------------------------


@triton.jit
def _counts(first, inside, n, steps):
    """How many scores of a sorted row are -inf, how many are finite, and whether one is NaN."""
    absent = _while_below(first, inside, n, steps, False)
    below = _while_below(first, inside, n, steps, True)
    last = load_one(first, n - 1 + 0 * absent, inside)
    return absent, below - absent, last != last


@triton.jit
def _while_below(first, inside, n, steps, finite: tl.constexpr):
    """At how many places, from the first on, the score is -inf, or is finite too."""
    low = 0 * inside.to(tl.int32)
    high = tl.where(inside, n, 0).to(tl.int32)
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = low < high
        x = load_one(first, middle, open_)
        below = open_ & ((x < float("inf")) if finite else (x == -float("inf")))
        low = tl.where(below, middle + 1, low)
        high = tl.where(below, high, tl.where(open_, middle, high))
    return low


@triton.jit
def _ones(begin, n, width: tl.constexpr):
    return (begin + tl.arange(0, width)[None, :] < n[:, None]).to(tl.float64)


@triton.jit
def _keep(to, begin, n, values):
    column = begin + tl.arange(0, values.shape[1])[None, :]
    tl.store(to[:, None] + column, values, mask=column < n[:, None])
