"""Kernels for rows of soft permutations, k × n, and for their gradients; all in float64.

A row of P is a sum of n small differences, and an F whose last bit is always off in the same sense
would show in it. A program holds some scores of one row, and goes from threshold to threshold.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels import _triton_densities as law
from softorder.kernels.fsum.triton_scan import inverse


@triton.jit
def permutation_rows(
    scores,
    first,
    last,
    stain,
    centre,
    rest,
    temperature,
    p,
    k,
    n,
    blocks,
    chunk,
    temperature_stride,
    density: tl.constexpr,
    descending: tl.constexpr,
    width: tl.constexpr,
):
    """P between the thresholds of this program; what is infinite has its places [first, last)."""
    row, column, where = _place(n, blocks, width)
    tau = tl.load(temperature + row * temperature_stride)
    x = tl.load(scores + row * n + column, mask=where, other=0.0).to(tl.float64)
    finite = tl.abs(x) < float("inf")
    begins = tl.load(first + row * n + column, mask=where, other=0)
    ends = tl.load(last + row * n + column, mask=where, other=1)
    share = 1.0 / (ends - begins).to(tl.float64)
    spoiled = tl.load(stain + row)
    centres, rests = centre + row * (k + 1), rest + row * (k + 1)
    begin = tl.program_id(1) * chunk
    tail, above = _tails(x, centres, rests, begin, tau, density)
    for j in range(begin, tl.minimum(begin + chunk, k)):
        next_tail, next_above = _tails(x, centres, rests, j + 1, tau, density)
        soft = tl.maximum((next_tail - tail) + (next_above - above), 0.0)
        line = k - 1 - j if descending else j
        hard = tl.where((line >= begins) & (line < ends), share, 0.0)
        entry = tl.where(finite, soft, hard) + spoiled
        tl.store(p + (row * k + line) * n + column, entry, mask=where)
        tail, above = next_tail, next_above


@triton.jit
def permutation_slopes(
    upstream,
    scores,
    centre,
    rest,
    temperature,
    sums,
    k,
    n,
    piece,
    temperature_stride,
    density: tl.constexpr,
    descending: tl.constexpr,
    width: tl.constexpr,
):
    """Σ_i f(u_ji) and Σ_i w_ji f(u_ji) over a piece of the scores, for one threshold."""
    row, j = tl.program_id(0).to(tl.int64) // (k + 1), tl.program_id(0) % (k + 1)
    tau = tl.load(temperature + row * temperature_stride)
    centres, rests = centre + row * (k + 1), rest + row * (k + 1)
    total, weighted = tl.zeros((width,), tl.float64), tl.zeros((width,), tl.float64)
    begin = tl.program_id(1) * piece
    for start in range(begin, tl.minimum(begin + piece, n), width):
        column = start + tl.arange(0, width)
        where = column < n
        x = tl.load(scores + row * n + column, mask=where, other=float("inf")).to(tl.float64)
        f = _pdf(x, centres, rests, j, tau, density)
        live = f > 0.0
        below = _upstream(upstream, row, j - 1, column, live, k, n, descending)
        above = _upstream(upstream, row, j, column, live, k, n, descending)
        total += f
        weighted += f * (below - above)
    pieces = tl.num_programs(1)
    to = sums + (2 * tl.program_id(0).to(tl.int64)) * pieces + tl.program_id(1)
    tl.store(to, tl.sum(total, 0))
    tl.store(to + pieces, tl.sum(weighted, 0))


@triton.jit
def permutation_gradients(
    upstream,
    scores,
    centre,
    rest,
    mean,
    temperature,
    parts,
    rows,
    k,
    n,
    blocks,
    chunk,
    temperature_stride,
    density: tl.constexpr,
    descending: tl.constexpr,
    width: tl.constexpr,
):
    """Σ_j f(u_ji) (mean_j - w_ji) over some of the thresholds."""
    row, column, where = _place(n, blocks, width)
    tau = tl.load(temperature + row * temperature_stride)
    x = tl.load(scores + row * n + column, mask=where, other=float("inf")).to(tl.float64)
    live = tl.abs(x) < float("inf")
    centres, rests = centre + row * (k + 1), rest + row * (k + 1)
    begin = tl.program_id(1) * chunk
    total = tl.zeros((width,), tl.float64)
    below = _upstream(upstream, row, begin - 1, column, live, k, n, descending)
    for j in range(begin, tl.minimum(begin + chunk, k + 1)):
        above = _upstream(upstream, row, j, column, live, k, n, descending)
        f = _pdf(x, centres, rests, j, tau, density)
        slope = tl.load(mean + row * (k + 1) + j)
        total += tl.where(f > 0.0, f * (slope - (below - above)), 0.0)
        below = above
    to = parts + (tl.program_id(1).to(tl.int64) * rows + row) * n
    tl.store(to + column, total, mask=where)


# ---- parts --------------------------------------------------------------------------------------


@triton.jit
def _place(n, blocks, width: tl.constexpr):
    """The row of this program, and its columns, of which those before n exist."""
    row, at = tl.program_id(0).to(tl.int64) // blocks, tl.program_id(0) % blocks
    column = at * width + tl.arange(0, width)
    return row, column, column < n


@triton.jit
def _upstream(upstream, row, j, column, where, k, n, descending: tl.constexpr):
    """The gradient of the line above threshold j, 0 where there is none."""
    line = (k - 1 - j if descending else j) + 0 * column
    there = where & (line >= 0) & (line < k) & (column < n)
    return tl.load(upstream + (row * k + line) * n + column, mask=there, other=0.0).to(tl.float64)


@triton.jit
def _tails(x, centres, rests, j, tau, density: tl.constexpr):
    """g and whether u >= 0, with F(u) = g for u < 0 and 1 + g else: exact where F is near 1."""
    centre, rest = tl.load(centres + j) + tl.zeros_like(x), tl.load(rests + j)
    finite = tl.abs(centre) < float("inf")
    z = tl.where(finite, (centre - x) + rest, centre)
    tail, _, _ = law.values(_anchored(tl.where(finite, z, 0.0), tau, density), density)
    tail = tl.where(finite, tail, 0.0)
    return tl.where(z < 0.0, tail, -tail), tl.where(z < 0.0, 0.0, 1.0)


@triton.jit
def _pdf(x, centres, rests, j, tau, density: tl.constexpr):
    """f(u), 0 where there is no threshold or no score."""
    centre, rest = tl.load(centres + j) + tl.zeros_like(x), tl.load(rests + j)
    live = (tl.abs(centre) < float("inf")) & (tl.abs(x) < float("inf"))
    z = tl.where(live, (centre - x) + rest, 0.0)
    _, pdf, _ = law.values(_anchored(z, tau, density), density)
    return tl.where(live, pdf, 0.0)


@triton.jit
def _anchored(z, tau, density: tl.constexpr):
    """u = z/τ, from where the density counts it."""
    return (z + law.middle(density) * tau) * inverse(tau)
