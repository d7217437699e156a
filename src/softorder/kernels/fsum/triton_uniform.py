"""F-sums of the uniform density: sums over windows of sources, those with |u| < 1/2.

Differences of prefix sums would cancel. A window is a few nodes of a binary tree over the row
instead: node q of level k holds Σ w and Σ w (x_i - x_first)/τ over the sources from q 2^k on, and
stands at (size >> k) + q in its plane. Nodes that are no part of a window are never read, whatever
they hold: there may be inf and NaN in them.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels.fsum.triton_scan import (
    count_of,
    difference,
    inverse,
    load,
    places_below,
    plane,
    rows_of_program,
)


@triton.jit
def uniform_tree(
    sources,
    rest,
    weights,
    temperature,
    count,
    tree,
    rows,
    m,
    size,
    level,
    levels,
    temperature_stride,
    count_stride,
    has_rest: tl.constexpr,
    weighted: tl.constexpr,
    counted: tl.constexpr,
    leaves: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """Builds so many levels above `width` nodes, which are there, or are the sources (leaves)."""
    row, inside = rows_of_program(rows, height)
    n = count_of(count, count_stride, row, inside, m, counted)[:, None]
    scale = inverse(tl.load(temperature + row * temperature_stride, mask=inside, other=1.0))
    at = tl.where(inside, row, 0).to(tl.int64)
    x, r = sources + at * m, rest + at * m
    zeroth = tree + at * 2 * size
    first = zeroth + 2 * plane(rows, size)
    begin = tl.program_id(1) * width
    if leaves:
        _leaves(weights + at * m, zeroth, first, inside, n, size, begin, weighted, width)
    lane = tl.arange(0, width // 2)[None, :]
    for k in range(level, level + levels):
        length = size >> k
        left = (begin >> (k - level)) + 2 * lane
        where = inside[:, None] & (2 * lane < (width >> (k - level))) & (left < length)
        right_source = (left + 1) << k
        there = where & (right_source < n)
        beside = load(r, right_source, there) if has_rest else 0.0
        left_beside = load(r, left << k, there) if has_rest else 0.0
        apart = difference(
            load(x, right_source, there), beside, load(x, left << k, there), left_beside
        )
        if weighted:
            w = load(zeroth, length + left + 1, where)
            both = load(zeroth, length + left, where) + w
            tl.store(zeroth[:, None] + (length + left) // 2, both, mask=where)
        else:
            w = tl.minimum(tl.maximum(n - right_source, 0), 1 << k).to(tl.float64)
        v = load(first, length + left, where) + load(first, length + left + 1, where)
        v += w * (apart * scale[:, None])
        tl.store(first[:, None] + (length + left) // 2, v, mask=where)
        tl.debug_barrier()


@triton.jit
def _leaves(
    weights, zeroth, first, inside, n, size, begin, weighted: tl.constexpr, width: tl.constexpr
):
    node = size + begin + tl.arange(0, width)[None, :]
    where = inside[:, None] & (node < 2 * size)
    if weighted:
        w = load(weights, node - size, where & (node - size < n))
        tl.store(zeroth[:, None] + node, w, mask=where)
    tl.store(first[:, None] + node, 0.0 * node, mask=where)
    tl.debug_barrier()  # the next level is written by other threads


@triton.jit
def window_sums(
    x,
    rest,
    zeroth,
    first,
    t,
    t_rest,
    begin,
    end,
    size,
    levels,
    scale,
    has_rest: tl.constexpr,
    weighted: tl.constexpr,
    moment: tl.constexpr,
):
    """Σ w and Σ w (t - x)/τ over the sources [begin, end)."""
    total, moved = tl.zeros_like(t), tl.zeros_like(t)
    low, high = begin, end
    for k in range(levels):
        open_ = low < high
        at_low, at_high = open_ & (low % 2 == 1), open_ & (high % 2 == 1)
        for side in tl.static_range(2):
            node = low if side == 0 else high - 1
            where = at_low if side == 0 else at_high
            w = load(zeroth, (size >> k) + node, where) if weighted else 0.0
            total += w
            if moment == 1:
                if not weighted:
                    w = tl.where(where, (1 << k) + 0.0, 0.0)
                beside = load(rest, node << k, where) if has_rest else 0.0
                u = difference(t, t_rest, load(x, node << k, where), beside) * scale[:, None]
                v = load(first, (size >> k) + node, where & (k > 0))
                moved += tl.where(where, u * w - v, 0.0)
        low = (low + 1) // 2
        high = high // 2
    if not weighted:
        total = (end - begin).to(tl.float64)
    return total, moved


@triton.jit
def uniform_at_targets(
    sources,
    source_rest,
    targets,
    target_rest,
    tree,
    temperature,
    source_count,
    target_count,
    out,
    rows,
    m,
    n,
    size,
    levels,
    shift,
    temperature_stride,
    source_stride,
    target_stride,
    derivative: tl.constexpr,
    moment: tl.constexpr,
    has_source_rest: tl.constexpr,
    has_target_rest: tl.constexpr,
    weighted: tl.constexpr,
    sources_counted: tl.constexpr,
    targets_counted: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """Σ_i w_i u^moment F^(derivative)(u) for every target, moved by `shift` temperatures."""
    row, inside = rows_of_program(rows, height)
    count = count_of(source_count, source_stride, row, inside, m, sources_counted)
    wanted = count_of(target_count, target_stride, row, inside, n, targets_counted)
    tau = tl.load(temperature + row * temperature_stride, mask=inside, other=1.0)
    scale, half = inverse(tau), 0.5 * tau[:, None]
    at = tl.where(inside, row, 0).to(tl.int64)
    x, r = sources + at * m, source_rest + at * m
    zeroth = tree + at * 2 * size
    first = zeroth + 2 * plane(rows, size)
    column = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    where = column < wanted[:, None]
    t = load(targets + at * n, column, where)
    t_rest = tl.zeros_like(t) + shift * tau[:, None]
    if has_target_rest:
        t_rest += load(target_rest + at * n, column, where)
    # done: u >= 1/2; begun: u > -1/2
    done = places_below(x, r, t, t_rest - half, count, levels, where, has_source_rest, True)
    begun = places_below(x, r, t, t_rest + half, count, levels, where, has_source_rest, False)
    begun = tl.maximum(begun, done)
    sums_moment: tl.constexpr = 1 if derivative == 0 else moment
    total, moved = window_sums(
        x, r, zeroth, first, t, t_rest, done, begun, size, levels, scale,
        has_source_rest, weighted, sums_moment,
    )  # fmt: skip
    answer = moved if moment == 1 else total
    if derivative == 0:
        answer = done + (moved + 0.5 * total)
    answer = tl.where(where, answer, 0.0)
    tl.store((out + at * n)[:, None] + column, answer, mask=inside[:, None] & (column < n))


@triton.jit
def uniform_roots(
    sources,
    tree,
    ends,
    begins,
    levels_,
    temperature,
    count,
    centre,
    rest,
    rows,
    m,
    n,
    size,
    levels,
    level_stride,
    temperature_stride,
    count_stride,
    counted: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """t = centre + rest with Σ F((t - x)/τ) = level, from the sum at all places x_i ± τ/2.

    Between these places FSum is linear: it rises by 1/τ for every source that has begun and is not
    done. Where there is none, t is in the middle of the gap.
    """
    row, inside = rows_of_program(rows, height)
    total = count_of(count, count_stride, row, inside, m, counted)
    tau = tl.load(temperature + row * temperature_stride, mask=inside, other=1.0)
    at = tl.where(inside, row, 0).to(tl.int64)
    x = sources + at * m
    first = tree + 2 * plane(rows, size) + at * 2 * size
    column = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    exists = inside[:, None] & (column < n)
    level = tl.load((levels_ + at * level_stride)[:, None] + column, mask=exists, other=0.0)
    where = exists & (level > 0.0) & (level < total[:, None])
    none = tl.zeros_like(level)
    done = places_below(ends + at * m, x, level, none, total, levels, where, False, True)
    begun = places_below(begins + at * m, x, level, none, total, levels, where, False, False)
    begun = tl.maximum(begun, done)
    inside_window = begun - done
    crowded = where & (inside_window > 0)
    low = load(x, tl.maximum(done - 1, 0), where)
    next_ = load(x, tl.minimum(done, total[:, None] - 1), where)
    place = tl.where(crowded, next_, low)
    _, moved = window_sums(
        x, x, first, first, place, none, done, begun, size, levels, inverse(tau), False, False, 1
    )
    along = ((level - done) - 0.5 * inside_window) - moved
    along = along / tl.maximum(inside_window, 1)
    away = tl.where(crowded, along * tau[:, None], 0.5 * (next_ - low))
    outside = tl.where(level <= 0.0, -float("inf"), float("inf"))
    to = at * n
    tl.store((centre + to)[:, None] + column, tl.where(where, place, outside), mask=exists)
    tl.store((rest + to)[:, None] + column, tl.where(where, away, 0.0), mask=exists)
