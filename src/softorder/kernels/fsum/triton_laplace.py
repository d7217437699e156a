"""F-sums of the Laplace density: sums that decay along the sources, then targets between them.

The first kernels leave left_i = Σ_{l <= i} w_l d^m e^-d and right_i = Σ_{l >= i} w_l d^m e^-d,
d = |x_i - x_l|/τ, in planes of memory: left, right, and both with m = 1 where `moment` is. A
program takes whole rows, block by block, with carries between the blocks; or a piece of a long
row, after another kernel has summed up the pieces.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels.fsum.triton_scan import (
    FAR,
    at_column,
    count_of,
    difference,
    inverse,
    load,
    load_one,
    places_below,
    plane,
    rows_of_program,
    scan,
    scan_moments,
)

# ---- along the sources --------------------------------------------------------------------------


@triton.jit
def laplace_scan(
    sources,
    rest,
    weights,
    temperature,
    count,
    piece_sums,
    sums,
    out,
    rows,
    m,
    piece,
    temperature_stride,
    count_stride,
    derivative: tl.constexpr,
    moment: tl.constexpr,
    has_rest: tl.constexpr,
    weighted: tl.constexpr,
    counted: tl.constexpr,
    answers: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    streamed: tl.constexpr,
    pieces: tl.constexpr,
):
    """The sums along the sources; or, if it `answers`, what they are at the sources themselves."""
    row, inside = rows_of_program(rows, height)
    n = count_of(count, count_stride, row, inside, m, counted)
    scale = inverse(tl.load(temperature + row * temperature_stride, mask=inside, other=1.0))
    base = tl.where(inside, row, 0).to(tl.int64) * m
    size = plane(rows, m)
    x, r, w, to = sources + base, rest + base, weights + base, sums + base
    begin = tl.program_id(1) * piece
    end = tl.minimum(begin + piece, tl.max(n, 0))
    none = tl.zeros_like(scale)
    carry, carried = none, none
    if pieces > 1:
        carry, carried = before_piece(
            x, r, piece_sums, n, scale, begin, piece, m, moment, has_rest, False, pieces
        )
    own = weights_of(w, begin, n, weighted, width)
    left, left_moment, carry, carried = block(
        x, r, own, n, scale, begin, carry, carried, moment, has_rest, False
    )
    if streamed:
        _store(to, size, 0, begin, n, left, left_moment, moment)
        for at in range(begin + width, end, width):
            own = weights_of(w, at, n, weighted, width)
            left, left_moment, carry, carried = block(
                x, r, own, n, scale, at, carry, carried, moment, has_rest, False
            )
            _store(to, size, 0, at, n, left, left_moment, moment)
        tl.debug_barrier()  # what is read back may have been written by another thread
    carry, carried = none, none
    if pieces > 1:
        carry, carried = before_piece(
            x, r, piece_sums, n, scale, begin, piece, m, moment, has_rest, True, pieces
        )
    blocks = tl.maximum((end - begin + width - 1) // width, 1)
    for turn in range(blocks):
        at = begin + (blocks - 1 - turn) * width
        own = weights_of(w, at, n, weighted, width)
        right, right_moment, carry, carried = block(
            x, r, own, n, scale, at, carry, carried, moment, has_rest, True
        )
        if answers:
            column = at + tl.arange(0, width)[None, :]
            where = column < n[:, None]
            if streamed:
                left = load(to, column, where)
                left_moment = load(to + 2 * size, column, where) if moment == 1 else left
            if derivative == 0:
                answer = (column + 1) + 0.5 * ((right - own) - left)
            else:
                answer = (
                    0.5 * (left_moment - right_moment)
                    if moment == 1
                    else 0.5 * ((right - own) + left)
                )
            tl.store((out + base)[:, None] + column, answer, mask=where)
        else:
            _store(to, size, 1, at, n, right, right_moment, moment)
    if not streamed and not answers:
        _store(to, size, 0, begin, n, left, left_moment, moment)


@triton.jit
def _store(to, size, side: tl.constexpr, begin, n, values, moments, moment: tl.constexpr):
    column = begin + tl.arange(0, values.shape[1])[None, :]
    where = column < n[:, None]
    tl.store((to + side * size)[:, None] + column, values, mask=where)
    if moment == 1:
        tl.store((to + (2 + side) * size)[:, None] + column, moments, mask=where)


@triton.jit
def weights_of(weights, begin, n, weighted: tl.constexpr, width: tl.constexpr):
    """The weights of a block of sources, 0 beyond the last one."""
    column = begin + tl.arange(0, width)[None, :]
    where = column < n[:, None]
    return load(weights, column, where) if weighted else where.to(tl.float64)


@triton.jit
def block(
    x,
    rest,
    w,
    n,
    scale,
    begin,
    carry,
    carried,
    moment: tl.constexpr,
    has_rest: tl.constexpr,
    backward: tl.constexpr,
):
    """The sums at the places of a block, with their moments; and what the next block starts with.

    The carry holds the sums at the last place before the block, in the direction of the scan.
    """
    width: tl.constexpr = w.shape[1]
    column = begin + tl.arange(0, width)[None, :]
    where = column < n[:, None]
    first, last = begin + 0 * n, tl.minimum(begin + width, n) - 1
    if backward:
        before, end = last + 1, first
        other = column + 1
    else:
        before, end = first - 1, last
        other = column - 1
    near = where & (other >= 0) & (other < n[:, None])
    d = _distance(x, rest, column, other, near, has_rest) * scale[:, None]
    d = tl.minimum(d, FAR)
    linked = (before >= 0) & (before < n) & (end >= 0) & (end < n)
    whole = difference(
        load_one(x, end, linked),
        load_one(rest, end, linked) if has_rest else 0.0,
        load_one(x, before, linked),
        load_one(rest, before, linked) if has_rest else 0.0,
    )
    whole = tl.minimum(tl.abs(whole) * scale, FAR)
    decay = tl.exp(-whole)
    if moment == 1:
        from_start, far, own, own_moment = scan_moments(d, w, backward)
        moments = own_moment + from_start * (carried[:, None] + far * carry[:, None])
        next_moment = at_column(own_moment, column, end) + decay * (carried + whole * carry)
    else:
        from_start, own = scan(d, w, backward)
        moments, next_moment = own, carried
    next_sum = at_column(own, column, end) + decay * carry
    return own + from_start * carry[:, None], moments, next_sum, next_moment


@triton.jit
def _distance(first, rest, column, other, where, has_rest: tl.constexpr):
    """|x - y| of two places in each row, 0 elsewhere."""
    beside = load(rest, column, where) if has_rest else 0.0
    other_beside = load(rest, other, where) if has_rest else 0.0
    x, y = load(first, column, where), load(first, other, where)
    return tl.abs(difference(x, beside, y, other_beside))


# ---- rows in pieces -----------------------------------------------------------------------------


@triton.jit
def laplace_pieces(
    sources,
    rest,
    weights,
    temperature,
    count,
    piece_sums,
    m,
    piece,
    temperature_stride,
    count_stride,
    moment: tl.constexpr,
    has_rest: tl.constexpr,
    weighted: tl.constexpr,
    counted: tl.constexpr,
    width: tl.constexpr,
):
    """The sums over every piece of a row, seen from its last place and from its first one."""
    row = tl.program_id(0) + tl.arange(0, 1)
    inside = row >= 0
    n = count_of(count, count_stride, row, inside, m, counted)
    scale = inverse(tl.load(temperature + row * temperature_stride))
    base = row.to(tl.int64) * m
    x, r, w = sources + base, rest + base, weights + base
    number, pieces = tl.program_id(1), tl.num_programs(1)
    begin = number * piece
    end = tl.minimum(n, begin + piece)
    there = begin < n
    low, high = load_one(x, begin + 0 * n, there), load_one(x, end - 1, there)
    low_rest = load_one(r, begin + 0 * n, there) if has_rest else 0.0 * low
    high_rest = load_one(r, end - 1, there) if has_rest else 0.0 * high
    left, right = tl.zeros_like(scale), tl.zeros_like(scale)
    left_moment, right_moment = tl.zeros_like(scale), tl.zeros_like(scale)
    for at in range(begin, tl.max(end, 0), width):
        column = at + tl.arange(0, width)[None, :]
        where = column < end[:, None]
        own, own_rest = load(x, column, where), load(r, column, where) if has_rest else 0.0
        share = load(w, column, where) if weighted else where.to(tl.float64)
        to_high = difference(high[:, None], high_rest[:, None], own, own_rest) * scale[:, None]
        to_low = difference(own, own_rest, low[:, None], low_rest[:, None]) * scale[:, None]
        to_high = tl.minimum(tl.where(where, to_high, FAR), FAR)
        to_low = tl.minimum(tl.where(where, to_low, FAR), FAR)
        seen_high, seen_low = share * tl.exp(-to_high), share * tl.exp(-to_low)
        left += tl.sum(seen_high, 1)
        right += tl.sum(seen_low, 1)
        if moment == 1:
            left_moment += tl.sum(to_high * seen_high, 1)
            right_moment += tl.sum(to_low * seen_low, 1)
    to = piece_sums + row * (4 * pieces) + number
    tl.store(to, left)
    tl.store(to + pieces, right)
    tl.store(to + 2 * pieces, left_moment)
    tl.store(to + 3 * pieces, right_moment)


@triton.jit
def before_piece(
    x,
    rest,
    piece_sums,
    n,
    scale,
    begin,
    piece,
    m,
    moment: tl.constexpr,
    has_rest: tl.constexpr,
    backward: tl.constexpr,
    most: tl.constexpr,
):
    """What a piece starts with: the sums of all pieces before it, seen from the place before it."""
    pieces = tl.num_programs(1)
    number = tl.arange(0, most)[None, :]
    if backward:
        place = begin + piece + 0 * n
        edge = number * piece
        counts = (edge > begin) & (edge < n[:, None])
    else:
        place = begin - 1 + 0 * n
        edge = (number + 1) * piece - 1
        counts = (edge < begin) & (begin < n[:, None])
    counts = counts & (number < pieces)
    there = (place >= 0) & (place < n)
    here = load_one(x, place, there)[:, None]
    here_rest = load_one(rest, place, there)[:, None] if has_rest else 0.0
    beside = load(rest, edge, counts) if has_rest else 0.0
    d = tl.abs(difference(here, here_rest, load(x, edge, counts), beside)) * scale[:, None]
    d = tl.where(counts, tl.minimum(d, FAR), FAR)
    decay = tl.exp(-d)
    side: tl.constexpr = 1 if backward else 0
    row = tl.program_id(0) + tl.arange(0, 1)
    at = piece_sums + row * (4 * pieces) + side * pieces
    total = load(at, number, counts)
    carry = tl.sum(decay * total, 1)
    if moment == 1:
        moments = load(at + 2 * pieces, number, counts)
        return carry, tl.sum(decay * (moments + d * total), 1)
    else:
        return carry, carry


# ---- at targets ---------------------------------------------------------------------------------


@triton.jit
def laplace_at_targets(
    sources,
    source_rest,
    targets,
    target_rest,
    sums,
    temperature,
    source_count,
    target_count,
    out,
    rows,
    m,
    n,
    steps,
    temperature_stride,
    source_stride,
    target_stride,
    derivative: tl.constexpr,
    moment: tl.constexpr,
    has_source_rest: tl.constexpr,
    has_target_rest: tl.constexpr,
    sources_counted: tl.constexpr,
    targets_counted: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """Σ_i w_i u^moment F^(derivative)(u) for every target, from the sums along the sources."""
    row, inside = rows_of_program(rows, height)
    count = count_of(source_count, source_stride, row, inside, m, sources_counted)
    wanted = count_of(target_count, target_stride, row, inside, n, targets_counted)
    scale = inverse(tl.load(temperature + row * temperature_stride, mask=inside, other=1.0))
    at = tl.where(inside, row, 0).to(tl.int64)
    x, r, size = sources + at * m, source_rest + at * m, plane(rows, m)
    column = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    where = column < wanted[:, None]
    t = load(targets + at * n, column, where)
    t_rest = load(target_rest + at * n, column, where) if has_target_rest else 0.0 * t
    upto = places_below(x, r, t, t_rest, count, steps, where, has_source_rest, True)
    start = upto
    if derivative == 2:  # f'(0) = 0: what is at the target counts on both sides
        start = places_below(x, r, t, t_rest, count, steps, where, has_source_rest, False)
    own = sums + at * m
    left = _seen_from(
        x, r, own, size, t, t_rest, upto - 1, where & (upto > 0), scale, moment, has_source_rest
    )
    right = _seen_from(
        x, r, own + size, size, t, t_rest, start, where & (start < count[:, None]), scale, moment,
        has_source_rest,
    )  # fmt: skip
    if derivative == 0:
        answer = upto + 0.5 * (right - left)
    else:
        right = -right if moment == 1 else right
        answer = 0.5 * (right - left if derivative == 2 else right + left)
    answer = tl.where(where, answer, 0.0)
    tl.store((out + at * n)[:, None] + column, answer, mask=inside[:, None] & (column < n))


@triton.jit
def _seen_from(
    x,
    rest,
    sums,
    size,
    t,
    t_rest,
    place,
    where,
    scale,
    moment: tl.constexpr,
    has_rest: tl.constexpr,
):
    """The sum at a source, as seen from a target beyond it."""
    beside = load(rest, place, where) if has_rest else 0.0
    d = tl.abs(difference(t, t_rest, load(x, place, where), beside)) * scale[:, None]
    d = tl.where(where, tl.minimum(d, FAR), FAR)
    total = load(sums, place, where)
    if moment == 1:
        return tl.exp(-d) * (load(sums + 2 * size, place, where) + d * total)
    else:
        return tl.exp(-d) * total


# ---- roots --------------------------------------------------------------------------------------


@triton.jit
def laplace_roots(
    sources,
    sums,
    levels,
    temperature,
    count,
    centre,
    rest,
    segment,
    slope,
    rows,
    m,
    n,
    steps,
    level_stride,
    temperature_stride,
    count_stride,
    counted: tl.constexpr,
    details: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """t = centre + rest with Σ F((t - x)/τ) = level, from the sums along the sources.

    Between two sources FSum is i - L e^-s/2 + R e^-s'/2 with s + s' the gap: a quadratic, see
    fsum/laplace.py. With `details`: the number of sources below t, and the slope of FSum.
    """
    row, inside = rows_of_program(rows, height)
    total = count_of(count, count_stride, row, inside, m, counted)[:, None]
    tau = tl.load(temperature + row * temperature_stride, mask=inside, other=1.0)
    scale = inverse(tau)[:, None]
    at = tl.where(inside, row, 0).to(tl.int64)
    x, size = sources + at * m, plane(rows, m)
    lefts = sums + at * m
    rights = lefts + size
    column = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    exists = inside[:, None] & (column < n)
    level = tl.load((levels + at * level_stride)[:, None] + column, mask=exists, other=0.0)
    where = exists & (level > 0.0) & (level < total)
    i = _levels_reached(lefts, rights, level, total, steps, where)
    lower, upper = where & (i > 0), where & (i < total)
    L, R = load(lefts, i - 1, lower), load(rights, i, upper)
    low, high = load(x, i - 1, lower), load(x, i, upper)
    inner = lower & upper
    gap = tl.where(inner, (high - low) * scale, 0.0)
    s, behind, both = _distances(L, R, gap, level - i)
    s = tl.where(inner, tl.minimum(tl.maximum(s, 0.0), gap), s)
    behind = tl.where(inner, tl.minimum(tl.maximum(behind, 0.0), gap), behind)
    from_above = ~lower | (upper & (s > behind))
    tau = tau[:, None]
    place = tl.where(from_above, high, low)
    # a product keeps the sign of 0, which says from which side t is seen
    away = tl.where(from_above, behind * (tau * -1.0), s * tau)
    outside = tl.where(level <= 0.0, -float("inf"), float("inf"))
    to = at * n
    tl.store((centre + to)[:, None] + column, tl.where(where, place, outside), mask=exists)
    tl.store((rest + to)[:, None] + column, tl.where(where, away, 0.0), mask=exists)
    if details:
        tl.store((segment + to)[:, None] + column, tl.where(where, i, 0), mask=exists)
        tl.store((slope + to)[:, None] + column, tl.where(where, both, 0.0), mask=exists)


@triton.jit
def _levels_reached(lefts, rights, level, count, steps, where):
    """At how many sources the sum is at most the level: it ascends, but for roundings."""
    low = tl.zeros_like(level).to(tl.int32)
    high = low + count
    for _ in range(steps):
        middle = (low + high) // 2
        open_ = (low < high) & where
        left, right = load(lefts, middle, open_), load(rights, middle, open_)
        reached = open_ & ((middle + 1) + 0.5 * ((right - 1.0) - left) <= level)
        low = tl.where(reached, middle + 1, low)
        high = tl.where(reached, high, tl.where(open_, middle, high))
    return low


@triton.jit
def _distances(L, R, gap, excess):
    """s and s' with R e^-s' - L e^-s = 2 excess and s + s' = gap, without cancellation; and the
    root of the quadratic, which is the slope of FSum.
    """
    both = tl.sqrt(excess * excess + L * R * tl.exp(-tl.minimum(gap, FAR)))
    log_left, log_right = tl.log(L), tl.log(R)
    middle = 0.5 * (gap + log_left - log_right)
    ahead = tl.where(excess < 0.0, log_left - tl.log(both - excess), middle)
    behind = tl.where(excess > 0.0, log_right - tl.log(both + excess), gap - ahead)
    return tl.where(excess > 0.0, gap - behind, ahead), behind, both
