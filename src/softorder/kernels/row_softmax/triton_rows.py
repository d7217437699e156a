"""Kernels for rows of SoftSort and NeuralSort, and for their way back.

Row s of the finite scores, in order, is a softmax with a known maximum, at its own score a:

    SoftSort     e^-|a - x|/τ
    NeuralSort   e^-(2 (U(x) - U(a)) - (2s + 1) (a - x))/τ,  U(x) = Σ_{y > x} (y - x)

descending, or the same of -x. So one pass finds the sum of a row and one writes it; where x stays
on chip it is read once. `order` has the places of the finite scores in order, then those of -inf,
then the others; `taken` says how many are finite.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_in_range as in_range

# ---- the order, and U ---------------------------------------------------------------------------


@triton.jit
def row_softmax_order(
    values, index, order, taken, n, descending: tl.constexpr, width: tl.constexpr
):
    """`order` and `taken`, from scores in ascending order and where they came from."""
    start = tl.program_id(0).to(tl.int64) * n
    absent, finite = 0, 0
    for begin in range(0, n, width):
        at = begin + tl.arange(0, width)
        x = tl.load(values + start + at, mask=at < n, other=float("inf"))
        absent += tl.sum((x == -float("inf")).to(tl.int32), 0)
        finite += tl.sum((tl.abs(x) < float("inf")).to(tl.int32), 0)
    tl.store(taken + tl.program_id(0), finite)
    for begin in range(0, n, width):
        at = begin + tl.arange(0, width)
        source = tl.load(index + start + at, mask=at < n, other=0)
        place = absent + finite - 1 - at if descending else at - absent
        place = tl.where(at < absent, finite + at, tl.where(at < absent + finite, place, at))
        tl.store(order + start + place, source.to(tl.int32), mask=at < n)


@triton.jit
def row_softmax_above(
    scores, order, taken, above, n, descending: tl.constexpr, width: tl.constexpr
):
    """U in float64: the sum of i (a_{i-1} - a_i), in which nothing cancels."""
    start = tl.program_id(0).to(tl.int64) * n
    count = tl.load(taken + tl.program_id(0))
    factor = _factor(scores + start, order + start, count)
    carry = tl.full((1,), 0.0, tl.float64)
    for begin in range(0, count, width):
        place = begin + tl.arange(0, width)
        live = place < count
        here = tl.load(order + start + place, mask=live, other=0)
        before = tl.load(order + start + place - 1, mask=live & (place > 0), other=0)
        x = (tl.load(scores + start + here, mask=live, other=0.0) * factor).to(tl.float64)
        y = (tl.load(scores + start + before, mask=live, other=0.0) * factor).to(tl.float64)
        step = y - x if descending else x - y
        rise = tl.where(live & (place > 0), place.to(tl.float64) * step, 0.0)
        tl.store(above + start + here, carry + tl.cumsum(rise, 0), mask=live)
        carry += tl.sum(rise, 0)


# ---- forward ------------------------------------------------------------------------------------


@triton.jit
def row_softmax_forward(
    scores,
    order,
    taken,
    above,
    temperature,
    p,
    k,
    n,
    chunk,
    temperature_stride,
    neural: tl.constexpr,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    streamed: tl.constexpr,
):
    """Some of the first k rows of one permutation, `height` of them at a time."""
    row = tl.program_id(0).to(tl.int64)
    first, here, u = scores + row * n, order + row * n, above + row * n
    finite, tau = tl.load(taken + row), tl.load(temperature + row * temperature_stride)
    factor = _factor(first, here, finite)
    scale = in_range.inverse(tau, factor, scores.dtype.element_ty)
    column = tl.arange(0, width)[None, :]
    x = _scores(first, column, n, factor)
    level = _levels(u, x, column, n, neural)
    certain, spoiled = _exceptions(x, first, n, finite, streamed)
    begin = tl.program_id(1) * chunk
    for place in range(begin, tl.minimum(begin + chunk, k), height):
        place = place + tl.arange(0, height)[:, None]
        rank = place - certain if descending else place
        inside = (rank >= 0) & (rank < finite)
        a, a_level = _anchor(first, u, here, rank, inside, factor, neural)
        out = p + row * k * n + place.to(tl.int64) * n
        if streamed:
            total = tl.zeros((height, 1), tl.float64)
            for start in range(0, n, width):
                at = start + column
                x = _scores(first, at, n, factor)
                level = _levels(u, x, at, n, neural)
                e = _weights(x, level, a, a_level, rank, scale, neural, descending)
                total += tl.sum(e, 1, keep_dims=True).to(tl.float64)
            share = _share(total, inside, x.dtype)
            for start in range(0, n, width):
                at = start + column
                x = _scores(first, at, n, factor)
                level = _levels(u, x, at, n, neural)
                e = _weights(x, level, a, a_level, rank, scale, neural, descending)
                q = _complete(
                    e * share, x, at, place, inside, here, n, finite, certain, spoiled, descending
                )
                tl.store(out + at, q, mask=(place < k) & (at < n))
        else:
            e = _weights(x, level, a, a_level, rank, scale, neural, descending)
            share = _share(tl.sum(e, 1, keep_dims=True), inside, x.dtype)
            q = _complete(
                e * share, x, column, place, inside, here, n, finite, certain, spoiled, descending
            )
            tl.store(out + column, q, mask=(place < k) & (column < n))


# ---- back ---------------------------------------------------------------------------------------


@triton.jit
def row_softmax_sums(
    upstream,
    scores,
    order,
    taken,
    above,
    temperature,
    sums,
    k,
    n,
    temperature_stride,
    neural: tl.constexpr,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """Of rows P_s with upstream v: 1/Σ e, <P, v>, and what SoftSort's a_s gets; (3, rows, k).

    That is Σ s D, with D = P ⊙ (v - <P, v>)/τ and s = sign(x - a).
    """
    row = tl.program_id(0).to(tl.int64)
    first, here, u = scores + row * n, order + row * n, above + row * n
    finite, tau = tl.load(taken + row), tl.load(temperature + row * temperature_stride)
    factor = _factor(first, here, finite)
    scale = in_range.inverse(tau, factor, scores.dtype.element_ty)
    column = tl.arange(0, width)[None, :]
    x = _scores(first, column, n, factor)
    certain, spoiled = _exceptions(x, first, n, finite, True)
    rank = tl.program_id(1) * height + tl.arange(0, height)[:, None]
    skipped = certain if descending else 0
    inside = rank < _wanted(finite, skipped, spoiled, k)
    a, a_level = _anchor(first, u, here, rank, inside, factor, neural)
    v_first = upstream + row * k * n + (rank + skipped).to(tl.int64) * n
    zero = tl.zeros((height, 1), tl.float64)
    total, total_v, total_s, total_sv = zero, zero, zero, zero
    for start in range(0, n, width):
        at = start + column
        x = _scores(first, at, n, factor)
        level = _levels(u, x, at, n, neural)
        live = inside & (tl.abs(x) < float("inf"))
        v = tl.load(v_first + at, mask=live & (at < n), other=0.0)
        e = _weights(x, level, a, a_level, rank, scale, neural, descending)
        e = tl.where(live, e, 0.0)
        total += tl.sum(e, 1, keep_dims=True).to(tl.float64)
        total_v += tl.sum(e * v, 1, keep_dims=True).to(tl.float64)
        if not neural:
            signed = _signed(e, x, a)
            total_s += tl.sum(signed, 1, keep_dims=True).to(tl.float64)
            total_sv += tl.sum(signed * v, 1, keep_dims=True).to(tl.float64)
    share = tl.where(inside, 1.0 / tl.where(inside, total, 1.0), 0.0)
    mean = total_v * share
    out = sums + row * k + rank
    size = tl.num_programs(0).to(tl.int64) * k
    tl.store(out, share, mask=rank < k)
    tl.store(out + size, mean, mask=rank < k)
    slope = in_range.inverse(tau, 1.0, scores.dtype.element_ty).to(tl.float64)
    by_anchor = (total_sv - mean * total_s) * share * slope
    tl.store(out + 2 * size, by_anchor, mask=rank < k)


@triton.jit
def row_softmax_columns(
    upstream,
    scores,
    order,
    taken,
    above,
    temperature,
    sums,
    found,
    k,
    n,
    temperature_stride,
    neural: tl.constexpr,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
):
    """Over all rows, with D as above: -Σ s D of SoftSort; Σ D and -Σ (2s + 1) D of NeuralSort.

    In float64, (1 or 2, rows, n).
    """
    row = tl.program_id(0).to(tl.int64)
    first, here, u = scores + row * n, order + row * n, above + row * n
    finite, tau = tl.load(taken + row), tl.load(temperature + row * temperature_stride)
    factor = _factor(first, here, finite)
    scale = in_range.inverse(tau, factor, scores.dtype.element_ty)
    slope = in_range.inverse(tau, 1.0, scores.dtype.element_ty)
    column = tl.program_id(1) * width + tl.arange(0, width)[None, :]
    x = _scores(first, column, n, factor)
    certain, spoiled = _exceptions(x, first, n, finite, True)
    level = _levels(u, x, column, n, neural)
    size = tl.num_programs(0).to(tl.int64)
    one, two = tl.zeros((1, width), tl.float64), tl.zeros((1, width), tl.float64)
    skipped = certain if descending else 0
    most = _wanted(finite, skipped, spoiled, k)
    for begin in range(0, most, height):
        rank = begin + tl.arange(0, height)[:, None]
        inside = rank < most
        a, a_level = _anchor(first, u, here, rank, inside, factor, neural)
        live = inside & (tl.abs(x) < float("inf"))
        at = row * k * n + (rank + skipped).to(tl.int64) * n + column
        v = tl.load(upstream + at, mask=live & (column < n), other=0.0)
        numbers = sums + row * k + rank
        share = tl.load(numbers, mask=inside, other=0.0)
        mean = tl.load(numbers + size * k, mask=inside, other=0.0)
        e = _weights(x, level, a, a_level, rank, scale, neural, descending)
        if neural:
            d = tl.where(live, e.to(tl.float64) * share * (v - mean) * slope.to(tl.float64), 0.0)
            one += tl.sum(d, 0, keep_dims=True)
            two -= tl.sum(d * (2 * rank + 1).to(tl.float64), 0, keep_dims=True)
        else:
            e = e * share.to(x.dtype) * (v - mean.to(x.dtype)) * slope
            d = _signed(tl.where(live, e, 0.0), x, a)
            one -= tl.sum(d, 0, keep_dims=True).to(tl.float64)
    out = found + row * n + column
    tl.store(out, one, mask=column < n)
    if neural:
        tl.store(out + size * n, two, mask=column < n)


# ---- parts --------------------------------------------------------------------------------------


@triton.jit
def _factor(first, here, finite):
    """What a row is multiplied by, found from its largest score and its least."""
    there = finite > 0
    a = tl.load(first + tl.load(here, mask=there, other=0), mask=there, other=0.0)
    b = tl.load(first + tl.load(here + finite - 1, mask=there, other=0), mask=there, other=0.0)
    return in_range.factor_for(tl.maximum(tl.abs(a), tl.abs(b)))


@triton.jit
def _scores(first, at, n, factor):
    """Scores of a row, and -inf behind it."""
    return tl.load(first + at, mask=at < n, other=-float("inf")) * factor


@triton.jit
def _levels(u, x, column, n, neural: tl.constexpr):
    """U of scores; only finite ones have it."""
    if neural:
        return tl.load(u + column, mask=(column < n) & (tl.abs(x) < float("inf")), other=0.0)
    else:
        return x


@triton.jit
def _anchor(first, u, here, rank, inside, factor, neural: tl.constexpr):
    """The scores of these ranks, and their U."""
    at = tl.load(here + rank, mask=inside, other=0)
    a = tl.load(first + at, mask=inside, other=0.0) * factor
    if neural:
        return a, tl.load(u + at, mask=inside, other=0.0)
    else:
        return a, a


@triton.jit
def _weights(x, level, a, a_level, rank, scale, neural: tl.constexpr, descending: tl.constexpr):
    """e^-drop/τ: 1 at the anchor, 0 at what is not finite."""
    if neural:
        gap = a.to(tl.float64) - x.to(tl.float64)
        gap = gap if descending else -gap
        drop = 2.0 * (level - a_level) - (2 * rank + 1).to(tl.float64) * gap
        drop = tl.where(tl.abs(x) < float("inf"), tl.maximum(drop, 0.0), float("inf"))
        return tl.exp((-drop * scale.to(tl.float64)).to(x.dtype))
    else:
        return tl.exp(-tl.abs(x - a) * scale)


@triton.jit
def _share(total, inside, dtype: tl.constexpr):
    return tl.where(inside, 1.0 / tl.where(inside, total, 1.0), 0.0).to(dtype)


@triton.jit
def _signed(d, x, a):
    """sign(x - a) d. At ties that is 0, the mean of both sides."""
    return tl.where(x > a, d, tl.where(x < a, -d, 0.0))


@triton.jit
def _exceptions(x, first, n, finite, streamed: tl.constexpr):
    """How many are +inf, and how many NaN; x are the first of n."""
    certain = tl.sum(tl.sum((x == float("inf")).to(tl.int32), 1), 0)
    spoiled = tl.sum(tl.sum((x != x).to(tl.int32), 1), 0)
    if streamed:  # noqa: SIM102, this one is decided when the kernel is compiled
        if finite < n:
            certain, spoiled = certain * 0, spoiled * 0
            for begin in range(0, n, x.shape[1]):
                column = begin + tl.arange(0, x.shape[1])
                y = tl.load(first + column, mask=column < n, other=0.0)
                certain += tl.sum((y == float("inf")).to(tl.int32), 0)
                spoiled += tl.sum((y != y).to(tl.int32), 0)
    return certain, spoiled


@triton.jit
def _wanted(finite, skipped, spoiled, k):
    """How many of the finite scores have a place among the first k, in a row without NaN."""
    return tl.where(spoiled == 0, tl.minimum(finite, k - skipped), 0)


@triton.jit
def _complete(
    q, x, column, place, inside, here, n, finite, certain, spoiled, descending: tl.constexpr
):
    """What infinities and NaN mean (kernels/sort/completion.py)."""
    if finite < n:
        q = tl.where(inside & (tl.abs(x) < float("inf")), q, 0.0)
        lowest = 0 if descending else finite
        crowded = (place >= lowest) & (place < lowest + certain)
        even = tl.where(crowded, 1.0 / tl.maximum(certain, 1).to(tl.float64), 0.0).to(q.dtype)
        q = tl.where(x == float("inf"), even, q)
        last = place >= finite + certain
        at = tl.load(here + place - certain, mask=last & (place - certain < n), other=-1)
        q = tl.where(last & (column == at), 1.0, q)
        q = tl.where(spoiled > 0, float("nan"), q)
    return q
