"""Kernels that take rows through all layers of a soft comparator network.

A layer is a list of partners: wire i meets partner[i], or itself where it has no comparator. With
v of this wire, v' of its partner and w the part that is swapped,

    values, and rows of P back to front     v + w (v' - v)
    gradients of values                     g + (w - u f(u)) (g' - g),  u = (b - a)/τ

on the lower wire a and on the higher wire b alike. Short networks exchange values between the
threads of a warp; longer ones by a scratch of their program, which caches hold. Before what another
thread may have written there is read, all wait at a barrier.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_in_range as in_range
from softorder.kernels.network import triton_comparators


@triton.jit
def network_values(
    scores,
    count,
    temperature,
    partners,
    outputs,
    scratch,
    values,
    rows,
    n,
    k,
    depth,
    temperature_stride,
    comparator: tl.constexpr,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    near: tl.constexpr,
):
    """The values that come out."""
    scratch += tl.program_id(0).to(tl.int64) * height * width
    row = tl.program_id(0) * height + tl.arange(0, height)[:, None]
    wire = tl.arange(0, width)[None, :]
    start, v, factor = _enter(scores, row, wire, rows, n, descending)
    tau, live = _row(temperature, count, row, rows, temperature_stride)
    scale = in_range.inverse(tau, factor, v.dtype)
    for layer in range(depth):
        to = tl.load(partners + layer * width + wire)
        d = _exchange(v, to, scratch, near) - v
        part = _swap(d, to, wire, live, scale, comparator)[0]
        v += part * d
    t = _exchange(v, tl.load(outputs + wire), scratch, near)
    t = (start - t if descending else start + t) / factor
    tl.store(values + row.to(tl.int64) * k + wire, t, mask=(row < rows) & (wire < k))


@triton.jit
def network_values_vjp(
    upstream,
    scores,
    count,
    temperature,
    partners,
    places,
    scratch,
    by_scores,
    rows,
    n,
    k,
    depth,
    temperature_stride,
    comparator: tl.constexpr,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    near: tl.constexpr,
):
    """Gradients of the scores; `places` says where the value of a wire comes out, if below k."""
    scratch += tl.program_id(0).to(tl.int64) * (depth + 1) * height * width
    trace = scratch + height * width
    wire = tl.arange(0, width)[None, :]
    place = tl.load(places + wire)
    step = tl.num_programs(0) * height
    for begin in range(tl.program_id(0) * height, rows, step):
        row = begin + tl.arange(0, height)[:, None]
        _, v, factor = _enter(scores, row, wire, rows, n, descending)
        tau, live = _row(temperature, count, row, rows, temperature_stride)
        scale = in_range.inverse(tau, factor, v.dtype)
        _follow(v, wire, live, scale, partners, scratch, trace, depth, comparator, near)
        at = upstream + row.to(tl.int64) * k + place
        g = tl.load(at, mask=(row < rows) & (place < k), other=0.0)
        for behind in range(depth):
            layer = depth - 1 - behind
            to = tl.load(partners + layer * width + wire)
            d = _remembered(trace, layer, height, width)
            part, slope, u = _swap(d, to, wire, live, scale, comparator)
            g += (part - u * slope) * (_exchange(g, to, scratch, near) - g)
        out = by_scores + row.to(tl.int64) * n + wire
        tl.store(out, g, mask=(row < rows) & (wire < n))
        tl.debug_barrier()


@triton.jit
def network_matrix(
    scores,
    count,
    temperature,
    partners,
    outputs,
    scratch,
    p,
    rows,
    n,
    k,
    depth,
    chunk,
    temperature_stride,
    comparator: tl.constexpr,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    near: tl.constexpr,
):
    """Rows of P from the last layer to the first; a program takes `chunk` of a row of scores."""
    scratch += tl.program_id(0).to(tl.int64) * (depth + height) * width
    trace = scratch + height * width
    wire = tl.arange(0, width)[None, :]
    chunks = tl.cdiv(k, chunk)
    for item in range(tl.program_id(0), rows * chunks, tl.num_programs(0)):
        row = item // chunks + tl.arange(0, 1)[:, None]
        _, v, factor = _enter(scores, row, wire, rows, n, descending)
        tau, live = _row(temperature, count, row, rows, temperature_stride)
        scale = in_range.inverse(tau, factor, v.dtype)
        _follow(v, wire, live, scale, partners, scratch, trace, depth, comparator, near)
        first = (item % chunks) * chunk
        for begin in range(first, tl.minimum(first + chunk, k), height):
            place = begin + tl.arange(0, height)[:, None]
            q = _units(outputs, place, wire, k, v.dtype)
            for behind in range(depth):
                layer = depth - 1 - behind
                to = tl.load(partners + layer * width + wire)
                d = _remembered(trace, layer, 1, width)
                part = _swap(d, to, wire, live, scale, comparator)[0]
                q += part * (_exchange(q, to, scratch, near) - q)
            out = p + (row.to(tl.int64) * k + place) * n + wire
            tl.store(out, q, mask=(place < k) & (wire < n))
        tl.debug_barrier()


@triton.jit
def network_matrix_vjp(
    upstream,
    scores,
    count,
    temperature,
    partners,
    outputs,
    scratch,
    by_scores,
    rows,
    n,
    k,
    depth,
    chunk,
    temperature_stride,
    comparator: tl.constexpr,
    descending: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    near: tl.constexpr,
):
    """Gradients of the scores by `chunk` rows of P, (rows, chunks, n).

    What is swapped in layer l gets <G, Q' - Q>: G is the gradient of P taken through the layers
    before l, and Q the rows that come from behind it. Then it acts on the values of its wires.
    """
    scratch += tl.program_id(0).to(tl.int64) * (height + depth * (2 + height)) * width
    trace = scratch + height * width
    parts = trace + depth * width
    rest = parts + depth * width
    wire = tl.arange(0, width)[None, :]
    chunks = tl.cdiv(k, chunk)
    for item in range(tl.program_id(0), rows * chunks, tl.num_programs(0)):
        row = item // chunks + tl.arange(0, 1)[:, None]
        _, v, factor = _enter(scores, row, wire, rows, n, descending)
        tau, live = _row(temperature, count, row, rows, temperature_stride)
        scale = in_range.inverse(tau, factor, v.dtype)
        for layer in range(depth):
            tl.store(parts + layer * width + wire, tl.zeros_like(v))
        _follow(v, wire, live, scale, partners, scratch, trace, depth, comparator, near)
        first = (item % chunks) * chunk
        for begin in range(first, tl.minimum(first + chunk, k), height):
            place = begin + tl.arange(0, height)[:, None]
            q = _units(outputs, place, wire, k, v.dtype)
            for behind in range(depth):
                layer = depth - 1 - behind
                to = tl.load(partners + layer * width + wire)
                other = _exchange(q, to, scratch, near) - q
                _remember(rest, layer, other)
                d = _remembered(trace, layer, 1, width)
                part = _swap(d, to, wire, live, scale, comparator)[0]
                q += part * other
            tl.debug_barrier()
            at = upstream + (row.to(tl.int64) * k + place) * n + wire
            g = tl.load(at, mask=(place < k) & (wire < n), other=0.0)
            for layer in range(depth):
                to = tl.load(partners + layer * width + wire)
                by_part = tl.sum(g * _remembered(rest, layer, height, width), 0, keep_dims=True)
                sums = parts + layer * width + wire
                tl.store(sums, tl.load(sums) + by_part)
                d = _remembered(trace, layer, 1, width)
                part = _swap(d, to, wire, live, scale, comparator)[0]
                g += part * (_exchange(g, to, scratch, near) - g)
            tl.debug_barrier()
        slopes = in_range.inverse(tau, 1.0, v.dtype)
        g = tl.zeros_like(v)
        for behind in range(depth):
            layer = depth - 1 - behind
            to = tl.load(partners + layer * width + wire)
            d = _remembered(trace, layer, 1, width)
            part, slope, u = _swap(d, to, wire, live, scale, comparator)
            by_part = tl.load(parts + layer * width + wire)
            by_part = (by_part + _exchange(by_part, to, scratch, near)) * slope * slopes
            g += (part - u * slope) * (_exchange(g, to, scratch, near) - g)
            g += tl.where(to > wire, by_part, tl.where(to < wire, -by_part, 0.0))
        out = by_scores + (row.to(tl.int64) * chunks + item % chunks) * n + wire
        tl.store(out, -g if descending else g, mask=wire < n)
        tl.debug_barrier()


# ---- parts --------------------------------------------------------------------------------------


@triton.jit
def _enter(scores, row, wire, rows, n, descending: tl.constexpr):
    """The first score, and the differences to it, or from it, on their wires; and their factor."""
    first = scores + row.to(tl.int64) * n
    start = tl.load(first, mask=row < rows, other=0.0)
    x = tl.load(first + wire, mask=(row < rows) & (wire < n), other=0.0)
    factor = in_range.factor_for(tl.max(tl.abs(x), 1, keep_dims=True))
    start, x = start * factor, x * factor
    return start, start - x if descending else x - start, factor


@triton.jit
def _row(temperature, count, row, rows, stride):
    """τ, and how many wires there are."""
    tau = tl.load(temperature + row * stride, mask=row < rows, other=1.0)
    live = tl.load(count + row, mask=row < rows, other=0)
    return tau, live


@triton.jit
def _follow(
    v,
    wire,
    live,
    scale,
    partners,
    scratch,
    trace,
    depth,
    comparator: tl.constexpr,
    near: tl.constexpr,
):
    """Takes values through all layers, and remembers v' - v in each."""
    for layer in range(depth):
        to = tl.load(partners + layer * v.shape[1] + wire)
        d = _exchange(v, to, scratch, near) - v
        _remember(trace, layer, d)
        part = _swap(d, to, wire, live, scale, comparator)[0]
        v += part * d
    tl.debug_barrier()


@triton.jit
def _swap(d, to, wire, live, scale, comparator: tl.constexpr):
    """Which part of d = v' - v is swapped, F(-u), its slope f(u), and u = (b - a)/τ.

    Nothing is, beyond the wires that are there.
    """
    limit: tl.constexpr = 1.3e154 if d.dtype == tl.float64 else 1.8e19
    u = tl.where(to > wire, d, -d) * scale
    u = tl.minimum(tl.maximum(u, -limit), limit)
    tail, slope = triton_comparators.tail_and_slope(tl.abs(u), comparator)
    there = tl.maximum(to, wire) < live
    part = tl.where(there, tl.where(u < 0.0, 1.0 - tail, tail), 0.0)
    return part, tl.where(there, slope, 0.0), u


@triton.jit
def _units(outputs, place, wire, k, dtype: tl.constexpr):
    """The last rows: each takes the wire on which its value comes out."""
    at = tl.load(outputs + place, mask=place < k, other=-1)
    return (wire == at).to(dtype)


@triton.jit
def _exchange(v, to, scratch, near: tl.constexpr):
    """The values of these wires."""
    if near:
        return tl.gather(v, tl.broadcast_to(to, v.shape), 1)
    else:
        first = tl.arange(0, v.shape[0])[:, None] * v.shape[1]
        tl.debug_barrier()
        tl.store(scratch + first + tl.arange(0, v.shape[1])[None, :], v)
        tl.debug_barrier()
        return tl.load(scratch + first + to)


@triton.jit
def _remember(trace, layer, values):
    tl.store(_places_of(trace, layer, values.shape[0], values.shape[1]), values)


@triton.jit
def _remembered(trace, layer, height: tl.constexpr, width: tl.constexpr):
    return tl.load(_places_of(trace, layer, height, width))


@triton.jit
def _places_of(trace, layer, height: tl.constexpr, width: tl.constexpr):
    row = layer * height + tl.arange(0, height)[:, None]
    return trace + row * width + tl.arange(0, width)[None, :]
