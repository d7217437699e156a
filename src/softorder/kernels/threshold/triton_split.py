"""Kernels for few long rows: many programs share a row, each takes a piece of it.

A pass is two launches: every piece leaves its sums in memory, then one program per row adds them,
in the same order every time, and moves b. Started from the threshold of a sample, two or three
passes solve an ordinary row; what they leave is solved by one program per row, as in
triton_rows.py.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels._triton_reduce import any_row
from softorder.kernels.threshold.triton_rows import (
    gradient_sums,
    load,
    load_upstream,
    result,
    row_gradients,
    score_gradients,
    slope,
    store,
)
from softorder.kernels.threshold.triton_solver import in_dtype, is_settled, move
from softorder.kernels.threshold.triton_steps import (
    change_rate,
    exponential_step,
    log_excess,
    smooth_step,
)
from softorder.kernels.threshold.triton_sums import distance, sweep_tile

SUMS = tl.constexpr(9)  # of a pass, see sweep_tile


@triton.jit
def topk_sweep_pieces(
    scores,
    temperature,
    place,
    solved,
    sums,
    rows,
    n,
    piece,
    temperature_stride,
    dtype: tl.constexpr,
    density: tl.constexpr,
    width: tl.constexpr,
):
    """The sums of one piece, at b."""
    row = tl.program_id(0) + tl.arange(0, 1)
    here = tl.program_id(1)
    if tl.load(solved + tl.program_id(0)) == 0:
        tau = tl.load(temperature + row * temperature_stride)
        _, scale = in_dtype(tau, dtype)
        centre, rest = split_place(tl.load(place + row), tl.load(place + rows + row), dtype)
        first, inside = scores + row.to(tl.int64) * n, row >= 0
        zero = tau * 0.0
        above, lower, upper, lower_pdf, upper_pdf = zero, zero, zero, zero, zero
        lower_drop, upper_drop = zero, zero
        lower_near, upper_near = zero + float("inf"), zero + float("inf")
        end = tl.minimum((here + 1) * piece, n)
        for begin in range(here * piece, end, width):
            x = load(first, inside, begin, end, width, -float("inf")).to(dtype)
            part = sweep_tile(distance(x, centre, rest, scale), density)
            above += part[0]
            lower += part[1]
            upper += part[2]
            lower_pdf += part[3]
            upper_pdf += part[4]
            lower_drop += part[5]
            upper_drop += part[6]
            lower_near = tl.minimum(lower_near, part[7].to(tl.float64))
            upper_near = tl.minimum(upper_near, part[8].to(tl.float64))
        pieces = tl.num_programs(1)
        out = sums + (row.to(tl.int64) * SUMS) * pieces + here
        tl.store(out, above)
        tl.store(out + pieces, lower)
        tl.store(out + 2 * pieces, upper)
        tl.store(out + 3 * pieces, lower_pdf)
        tl.store(out + 4 * pieces, upper_pdf)
        tl.store(out + 5 * pieces, lower_drop)
        tl.store(out + 6 * pieces, upper_drop)
        tl.store(out + 7 * pieces, lower_near)
        tl.store(out + 8 * pieces, upper_near)


@triton.jit
def topk_step(
    sums,
    k,
    temperature,
    place,
    solved,
    b,
    sweeps,
    rows,
    n,
    pieces,
    k_stride,
    temperature_stride,
    density: tl.constexpr,
    most_pieces: tl.constexpr,
):
    """Adds the sums of a row, moves b, and tells whether that was the last step."""
    row = tl.program_id(0) + tl.arange(0, 1)
    if tl.load(solved + tl.program_id(0)) == 0:
        dtype: tl.constexpr = b.dtype.element_ty
        wide: tl.constexpr = dtype == tl.float64
        tau = tl.load(temperature + row * temperature_stride)
        first = sums + tl.program_id(0).to(tl.int64) * SUMS * pieces
        at = tl.arange(0, most_pieces)[None, :]
        above = tl.sum(tl.load(first + at, mask=at < pieces, other=0.0), 1)
        lower = tl.sum(tl.load(first + pieces + at, mask=at < pieces, other=0.0), 1)
        upper = tl.sum(tl.load(first + 2 * pieces + at, mask=at < pieces, other=0.0), 1)
        lower_pdf = tl.sum(tl.load(first + 3 * pieces + at, mask=at < pieces, other=0.0), 1)
        upper_pdf = tl.sum(tl.load(first + 4 * pieces + at, mask=at < pieces, other=0.0), 1)
        lower_drop = tl.sum(tl.load(first + 5 * pieces + at, mask=at < pieces, other=0.0), 1)
        upper_drop = tl.sum(tl.load(first + 6 * pieces + at, mask=at < pieces, other=0.0), 1)
        far = float("inf")
        lower_near = tl.min(tl.load(first + 7 * pieces + at, mask=at < pieces, other=far), 1)
        upper_near = tl.min(tl.load(first + 8 * pieces + at, mask=at < pieces, other=far), 1)
        extra = above - tl.load(k + row * k_stride)
        residual, pdf = extra + (lower - upper), lower_pdf + upper_pdf
        excess = log_excess(extra, residual, lower, upper)
        if density == law.LAPLACE:
            step = exponential_step(extra, lower, upper)
            lost = step != step
        else:
            step, lost = smooth_step(
                extra,
                lower,
                upper,
                lower_pdf,
                upper_pdf,
                lower_drop,
                upper_drop,
                lower_near,
                upper_near,
                residual * float("nan"),
                residual,
                density,
            )
        rate = change_rate(lower, upper, pdf, lower_near, upper_near, density)
        done = is_settled(residual, excess, lower, upper_pdf, step * rate, n, wide, density)
        done = done & ~lost & (tl.abs(step) < float("inf"))
        by = tl.where(tl.abs(step) < float("inf"), step * tau, 0.0)
        high, low = move(tl.load(place + row), tl.load(place + rows + row), by)
        tl.store(place + row, high)
        tl.store(place + rows + row, low)
        tl.store(sweeps + row, tl.load(sweeps + row) + 1)
        centre, rest = split_place(high, low, dtype)
        tl.store(b + row, centre)
        tl.store(b + rows + row, rest)
        if any_row(done):
            tl.store(solved + row, 1)


@triton.jit
def split_place(high, low, dtype: tl.constexpr):
    """b as centre + rest in the dtype of the scores."""
    centre = high.to(dtype)
    return centre, ((high - centre.to(tl.float64)) + low).to(dtype)


@triton.jit
def topk_write_pieces(
    scores,
    temperature,
    b,
    p,
    rows,
    n,
    piece,
    temperature_stride,
    density: tl.constexpr,
    width: tl.constexpr,
):
    """p of one piece."""
    row = tl.program_id(0) + tl.arange(0, 1)
    tau = tl.load(temperature + row * temperature_stride)
    centre, rest = tl.load(b + row), tl.load(b + rows + row)
    first, out, inside = scores + row.to(tl.int64) * n, p + row.to(tl.int64) * n, row >= 0
    end = tl.minimum((tl.program_id(1) + 1) * piece, n)
    for begin in range(tl.program_id(1) * piece, end, width):
        x = load(first, inside, begin, end, width, -float("inf")).to(centre.dtype)
        store(out, inside, begin, end, result(x, centre, rest, tau, density))


@triton.jit
def topk_gradient_pieces(
    upstream,
    index,
    scores,
    temperature,
    b,
    sums,
    rows,
    n,
    piece,
    temperature_stride,
    density: tl.constexpr,
    width: tl.constexpr,
    one_entry: tl.constexpr,
):
    """Σ f, Σ f v, Σ f u, Σ f u v of one piece."""
    row = tl.program_id(0) + tl.arange(0, 1)
    tau = tl.load(temperature + row * temperature_stride)
    centre, rest = tl.load(b + row), tl.load(b + rows + row)
    first, inside = scores + row.to(tl.int64) * n, row >= 0
    zero = tau * 0.0
    total_f, total_fv, total_fu, total_fuv = zero, zero, zero, zero
    end = tl.minimum((tl.program_id(1) + 1) * piece, n)
    for begin in range(tl.program_id(1) * piece, end, width):
        x = load(first, inside, begin, end, width, -float("inf")).to(centre.dtype)
        v = load_upstream(upstream, index, row, inside, begin, n, width, one_entry).to(x.dtype)
        u, pdf = slope(x, centre, rest, tau, density)
        part = gradient_sums(v, u, pdf)
        total_f += part[0]
        total_fv += part[1]
        total_fu += part[2]
        total_fuv += part[3]
    pieces = tl.num_programs(1)
    out = sums + row.to(tl.int64) * 4 * pieces + tl.program_id(1)
    tl.store(out, total_f)
    tl.store(out + pieces, total_fv)
    tl.store(out + 2 * pieces, total_fu)
    tl.store(out + 3 * pieces, total_fuv)


@triton.jit
def topk_write_gradients(
    upstream,
    index,
    scores,
    temperature,
    b,
    sums,
    by_scores,
    by_row,
    rows,
    n,
    piece,
    temperature_stride,
    density: tl.constexpr,
    width: tl.constexpr,
    one_entry: tl.constexpr,
    by_temperature: tl.constexpr,
    most_pieces: tl.constexpr,
):
    """Adds the sums of a row, and writes one piece of its gradients."""
    row = tl.program_id(0) + tl.arange(0, 1)
    pieces = tl.num_programs(1)
    tau = tl.load(temperature + row * temperature_stride)
    centre, rest = tl.load(b + row), tl.load(b + rows + row)
    at = tl.arange(0, most_pieces)[None, :]
    first = sums + tl.program_id(0).to(tl.int64) * 4 * pieces
    total_f = tl.sum(tl.load(first + at, mask=at < pieces, other=0.0), 1)
    total_fv = tl.sum(tl.load(first + pieces + at, mask=at < pieces, other=0.0), 1)
    total_fu = tl.sum(tl.load(first + 2 * pieces + at, mask=at < pieces, other=0.0), 1)
    total_fuv = tl.sum(tl.load(first + 3 * pieces + at, mask=at < pieces, other=0.0), 1)
    mean, by_tau, flat = row_gradients(total_f, total_fv, total_fu, total_fuv, tau)
    if tl.program_id(1) == 0:
        tl.store(by_row + row, mean)
        if by_temperature:
            tl.store(by_row + rows + row, by_tau)
    start, out, inside = scores + row.to(tl.int64) * n, by_scores + row.to(tl.int64) * n, row >= 0
    end = tl.minimum((tl.program_id(1) + 1) * piece, n)
    for begin in range(tl.program_id(1) * piece, end, width):
        x = load(start, inside, begin, end, width, -float("inf")).to(centre.dtype)
        v = load_upstream(upstream, index, row, inside, begin, n, width, one_entry).to(x.dtype)
        _, pdf = slope(x, centre, rest, tau, density)
        store(out, inside, begin, end, score_gradients(v, pdf, mean, flat, tau))
