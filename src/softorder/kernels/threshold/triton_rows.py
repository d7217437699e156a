"""Kernels for whole rows: thresholds, p, and the gradients of p.

A program takes a tile of rows, filled up with -inf, which takes no part in anything. What fits into
it stays on chip: every score is read once and written once. Longer rows are `streamed`: a program
takes one row, and reads it again in every pass.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels._triton_reduce import total
from softorder.kernels.threshold.triton_solver import in_dtype, solve


@triton.jit
def topk_forward(
    scores,
    k,
    temperature,
    p,
    b,
    sweeps,
    solved,
    rows,
    n,
    k_stride,
    temperature_stride,
    density: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    streamed: tl.constexpr,
    writes_p: tl.constexpr,
    skips: tl.constexpr,
):
    """Thresholds, and p or the number of passes. With `skips`, solved rows are left out."""
    row, inside, first = rows_of_program(scores, rows, n, height)
    if skips:
        if tl.load(solved + tl.program_id(0)) == 0:
            _solve_rows(
                scores, k, temperature, p, b, sweeps, rows, n, k_stride, temperature_stride,
                row, inside, first, density, width, streamed, writes_p,
            )  # fmt: skip
    else:
        _solve_rows(
            scores, k, temperature, p, b, sweeps, rows, n, k_stride, temperature_stride,
            row, inside, first, density, width, streamed, writes_p,
        )  # fmt: skip


@triton.jit
def _solve_rows(
    scores,
    k,
    temperature,
    p,
    b,
    sweeps,
    rows,
    n,
    k_stride,
    temperature_stride,
    row,
    inside,
    first,
    density: tl.constexpr,
    width: tl.constexpr,
    streamed: tl.constexpr,
    writes_p: tl.constexpr,
):
    x = load(first, inside, 0, n, width, -float("inf")).to(b.dtype.element_ty)
    number = tl.load(k + row * k_stride, mask=inside, other=0.0)
    tau = tl.load(temperature + row * temperature_stride, mask=inside, other=1.0)
    centre, rest, passes = solve(x, first, n, number, tau, density, not writes_p, streamed)
    tl.store(b + row, centre, mask=inside)
    tl.store(b + rows + row, rest, mask=inside)
    if not writes_p:
        tl.store(sweeps + row, passes, mask=inside)
    else:
        out = p + row.to(tl.int64) * n
        if streamed:
            for begin in range(0, n, width):
                x = load(first, inside, begin, n, width, -float("inf")).to(b.dtype.element_ty)
                store(out, inside, begin, n, result(x, centre, rest, tau, density))
        else:
            store(out, inside, 0, n, result(x, centre, rest, tau, density))


@triton.jit
def topk_backward(
    upstream,
    index,
    scores,
    temperature,
    b,
    by_scores,
    by_row,
    rows,
    n,
    temperature_stride,
    density: tl.constexpr,
    height: tl.constexpr,
    width: tl.constexpr,
    streamed: tl.constexpr,
    one_entry: tl.constexpr,
    by_temperature: tl.constexpr,
):
    """Gradients of the scores; and per row of k, and of temperature if wanted.

    With `one_entry`, upstream is one number per row, at `index`, and 0 elsewhere.
    """
    row, inside, first = rows_of_program(scores, rows, n, height)
    out = by_scores + row.to(tl.int64) * n
    tau = tl.load(temperature + row * temperature_stride, mask=inside, other=1.0)
    centre = tl.load(b + row, mask=inside, other=0.0)
    rest = tl.load(b + rows + row, mask=inside, other=0.0)
    x = load(first, inside, 0, n, width, -float("inf")).to(centre.dtype)
    v = load_upstream(upstream, index, row, inside, 0, n, width, one_entry).to(x.dtype)
    u, pdf = slope(x, centre, rest, tau, density)
    total_f, total_fv, total_fu, total_fuv = gradient_sums(v, u, pdf)
    if streamed:
        for begin in range(width, n, width):
            x = load(first, inside, begin, n, width, -float("inf")).to(centre.dtype)
            v = load_upstream(upstream, index, row, inside, begin, n, width, one_entry).to(x.dtype)
            u, pdf = slope(x, centre, rest, tau, density)
            sums = gradient_sums(v, u, pdf)
            total_f += sums[0]
            total_fv += sums[1]
            total_fu += sums[2]
            total_fuv += sums[3]
    mean, by_tau, flat = row_gradients(total_f, total_fv, total_fu, total_fuv, tau)
    tl.store(by_row + row, mean, mask=inside)
    if by_temperature:
        tl.store(by_row + rows + row, by_tau, mask=inside)
    if streamed:
        for begin in range(0, n, width):
            x = load(first, inside, begin, n, width, -float("inf")).to(centre.dtype)
            v = load_upstream(upstream, index, row, inside, begin, n, width, one_entry).to(x.dtype)
            u, pdf = slope(x, centre, rest, tau, density)
            store(out, inside, begin, n, score_gradients(v, pdf, mean, flat, tau))
    else:
        store(out, inside, 0, n, score_gradients(v, pdf, mean, flat, tau))


# ---- parts that rows in pieces share ------------------------------------------------------------


@triton.jit
def rows_of_program(scores, rows, n, height: tl.constexpr):
    """The rows of this program, which of them exist, and where they begin (others: anywhere)."""
    row = tl.program_id(0) * height + tl.arange(0, height)
    inside = row < rows
    return row, inside, scores + tl.where(inside, row, 0).to(tl.int64) * n


@triton.jit
def load(first, inside, begin, n, width: tl.constexpr, other: tl.constexpr):
    """`width` entries from `begin` on of rows of n, which begin at `first`."""
    column = begin + tl.arange(0, width)[None, :]
    return tl.load(first[:, None] + column, mask=inside[:, None] & (column < n), other=other)


@triton.jit
def load_upstream(
    upstream, index, row, inside, begin, n, width: tl.constexpr, one_entry: tl.constexpr
):
    if one_entry:
        weight = tl.load(upstream + row, mask=inside, other=0.0)
        at = tl.load(index + row, mask=inside, other=0)
        column = begin + tl.arange(0, width)[None, :]
        return tl.where(column == at[:, None], weight[:, None], 0.0)
    else:
        return load(upstream + row.to(tl.int64) * n, inside, begin, n, width, 0.0)


@triton.jit
def store(first, inside, begin, n, values):
    column = begin + tl.arange(0, values.shape[1])[None, :]
    tl.store(first[:, None] + column, values, mask=inside[:, None] & (column < n))


@triton.jit
def result(x, centre, rest, temperature, density: tl.constexpr):
    """p = F((x - b)/τ), by the table of contract.py where b is not finite."""
    _, scale = in_dtype(temperature, x.dtype)
    infinite = float("inf")
    beside = tl.where(tl.abs(centre) < infinite, rest, 0.0)[:, None]
    centre, rest = centre[:, None], rest[:, None]
    u = tl.where(x == centre, -rest, (x - centre) - beside) * scale[:, None]
    tail, _, _ = law.values(u, density)
    p = tl.where(u < law.middle(density), tail, 1.0 - tail)
    return tl.where((x == -infinite) & (centre == centre), 0.0, p)  # a NaN spoils its whole row


@triton.jit
def slope(x, centre, rest, temperature, density: tl.constexpr):
    """u, and f(u), which is 0 where b is not finite."""
    _, scale = in_dtype(temperature, x.dtype)
    u = ((x - centre[:, None]) - rest[:, None]) * scale[:, None]
    pdf = law.pdf(u, density)
    pdf = tl.where((tl.abs(centre) < float("inf"))[:, None], pdf, 0.0)
    return tl.where(pdf > 0.0, u, 0.0), pdf


@triton.jit
def gradient_sums(v, u, pdf):
    """Σ f, Σ f v, Σ f u, Σ f u v."""
    live = pdf > 0.0  # an upstream of inf or NaN says nothing where f is 0
    return (
        tl.sum(pdf, 1).to(tl.float64),
        total(live, pdf * v).to(tl.float64),
        total(live, pdf * u).to(tl.float64),
        total(live, pdf * u * v).to(tl.float64),
    )


@triton.jit
def row_gradients(total_f, total_fv, total_fu, total_fuv, temperature):
    """∂L/∂k = <q, v> and ∂L/∂τ = -Σ v d (u - <q, u>), with d = f(u)/τ and q = d/Σd.

    Both are 0 where Σ f is, which is also told.
    """
    flat = ~(total_f > 0.0)
    mean = tl.where(flat, 0.0, total_fv / tl.where(flat, 1.0, total_f))
    by_temperature = tl.where(flat, 0.0, -(total_fuv - mean * total_fu) / temperature)
    return mean, by_temperature, flat


@triton.jit
def score_gradients(v, pdf, mean, flat, temperature):
    """∂L/∂x = d (v - <q, v>)."""
    inverse = (1.0 / temperature).to(pdf.dtype)[:, None]
    mean = mean.to(pdf.dtype)[:, None]
    live = (pdf > 0.0) & ~flat[:, None]
    return tl.where(live, pdf * inverse * (v - mean), 0.0)
