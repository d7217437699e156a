"""Selection in a tile of rows: the score at a rank, and the one before it.

What has to be counted is read from memory again, a few scores at a time: few rows need a selection,
and the registers that it would take away from all the others are worth more.
"""

# mypy: ignore-errors
# The functions are in the language of Triton, which only looks like Python.

import triton
import triton.language as tl

from softorder.kernels._triton_reduce import any_row
from softorder.kernels.threshold.triton_sums import load_chunk

BINS = tl.constexpr(64)
_FEW = tl.constexpr(64)  # in rows of no more scores, every score counts those above it
_CHUNK = tl.constexpr(256)


@triton.jit
def select(x, scores, n, whole, certain, wanted, start, end, streamed: tl.constexpr):
    """The finite score that `whole` finite ones precede in descending order, and the one before.

    Also the number of passes. `scores` points to the first score of each row.
    Where `wanted` is false the result means nothing; the one before the first is +inf. The score is
    probably between `start` and `end`, and found sooner if it is.
    """
    if x.shape[1] <= _FEW:
        return _by_pairs(x, scores, n, whole + certain)
    else:
        return _by_histograms(x, scores, n, whole, wanted, start, end, streamed)


@triton.jit
def _by_pairs(x, scores, n, rank):
    infinite = float("inf")
    above = tl.zeros(x.shape, tl.int32)
    for i in range(n):
        above += (tl.load(scores + i)[:, None].to(x.dtype) > x).to(tl.int32)
    finite = tl.abs(x) < infinite
    value = tl.min(tl.where(finite & (above <= rank[:, None]), x, infinite), 1)
    before = tl.min(tl.where(finite & (above < rank[:, None]), x, infinite), 1)
    return value, before, tl.zeros_like(rank) + 1


@triton.jit
def _by_histograms(x, scores, n, whole, wanted, start, end, streamed: tl.constexpr):
    # each pass deals the candidates into bins of equal width between two keys, first those that are
    # expected, then the least and the largest, and keeps one bin; it remembers what is just above
    least, most = key_range(x.dtype)
    rank, passes = whole, tl.zeros_like(whole)
    first, last = ordered(start), ordered(end)
    low, high = first * 0 + least, first * 0 + most
    next_larger = high
    every = rank * 0 + BINS  # stands for no bin
    low, high, _ = _narrow(x, scores, n, low, high, first, last, every, streamed)
    high = tl.where(wanted, high, low)
    while any_row(low < high):
        counts = _histograms(x.dtype, scores, n, low, high, first, last)
        chosen, above = choose(counts, rank)
        new_low, new_high, over = _narrow(x, scores, n, low, high, first, last, chosen, streamed)
        narrower = low < high
        rank -= tl.where(narrower, above, 0)
        next_larger = tl.where(narrower, tl.minimum(next_larger, over), next_larger)
        low, high = tl.where(narrower, new_low, low), tl.where(narrower, new_high, high)
        first, last = low, high
        passes += narrower.to(tl.int32)
    before = tl.where(rank > 0, low, next_larger)  # of equal scores, one is before the other
    return from_ordered(low, x.dtype), from_ordered(before, x.dtype), passes


@triton.jit
def _narrow(x, scores, n, low, high, first, last, chosen, streamed: tl.constexpr):
    """The least and the largest key in the chosen bin, and the least one in a bin above it."""
    if streamed:
        width: tl.constexpr = x.shape[1]
        least, most = key_range(x.dtype)
        new_low, new_high, over = low * 0 + most, low * 0 + least, low * 0 + most
        for begin in range(0, n, width):
            part = load_chunk(scores, begin, n, width, x.dtype)
            part_low, part_high, part_over = _narrow_tile(part, low, high, first, last, chosen)
            new_low = tl.minimum(new_low, part_low)
            new_high = tl.maximum(new_high, part_high)
            over = tl.minimum(over, part_over)
        return new_low, new_high, over
    else:
        return _narrow_tile(x, low, high, first, last, chosen)


@triton.jit
def _narrow_tile(x, low, high, first, last, chosen):
    key = ordered(x)
    least, most = key_range(x.dtype)
    chosen = chosen[:, None]
    place = bin_of(key, first[:, None], last[:, None])
    inside = (tl.abs(x) < float("inf")) & (key >= low[:, None]) & (key <= high[:, None])
    here = inside & ((place == chosen) | (chosen == BINS))
    return (
        tl.min(tl.where(here, key, most), 1),
        tl.max(tl.where(here, key, least), 1),
        tl.min(tl.where(inside & (place > chosen), key, most), 1),
    )


@triton.jit
def _histograms(dtype: tl.constexpr, scores, n, low, high, first, last):
    """How many of the keys between `low` and `high` fall into each bin, (rows, BINS)."""
    rows: tl.constexpr = low.shape[0]
    counts = tl.zeros((rows, BINS), tl.int32)
    for begin in range(0, n, _CHUNK):
        column = begin + tl.arange(0, _CHUNK)[None, :]
        x = tl.load(scores[:, None] + column, mask=column < n, other=float("inf")).to(dtype)
        key = ordered(x)
        inside = (tl.abs(x) < float("inf")) & (key >= low[:, None]) & (key <= high[:, None])
        place = bin_of(key, first[:, None], last[:, None])
        counts += histogram(place, inside)
    return counts


@triton.jit
def ordered(x):
    """Integers in the order of the scores."""
    x = x + 0.0  # of the two zeros, the positive one
    if x.dtype == tl.float64:
        bits = x.to(tl.int64, bitcast=True)
        return tl.where(bits < 0, bits ^ 0x7FFFFFFFFFFFFFFF, bits)
    else:
        bits = x.to(tl.int32, bitcast=True)
        return tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


@triton.jit
def key_range(dtype: tl.constexpr):
    """No such integer is less or larger."""
    if dtype == tl.float64:
        return -(2**63) + 1, 2**63 - 1
    else:
        return -(2**31) + 1, 2**31 - 1


@triton.jit
def from_ordered(key, dtype: tl.constexpr):
    """The score with that integer."""
    most: tl.constexpr = 0x7FFFFFFFFFFFFFFF if dtype == tl.float64 else 0x7FFFFFFF
    return tl.where(key < 0, key ^ most, key).to(dtype, bitcast=True)


@triton.jit
def bin_of(key, first, last):
    """The bin of a key: rounded, but in order. The first and the last bin are for those outside."""
    span = tl.maximum(_distance(last, first), 1.0)
    place = (_distance(key, first) / span * (BINS - 2.5)).to(tl.int32) + 1
    place = tl.minimum(tl.maximum(place, 1), BINS - 2)
    return tl.where(key < first, 0, tl.where(key > last, BINS - 1, place))


@triton.jit
def _distance(high, low):
    # the difference wraps around, and is right again without a sign
    if high.dtype == tl.int64:
        return (high - low).to(tl.uint64, bitcast=True).to(tl.float32)
    else:
        return (high - low).to(tl.uint32, bitcast=True).to(tl.float32)


@triton.jit
def histogram(place, inside):
    """How many of a row fall into each bin, (rows, BINS)."""
    rows: tl.constexpr = place.shape[0]
    first = tl.arange(0, rows)[:, None] * BINS
    counts = tl.histogram(tl.ravel(place + first), rows * BINS, mask=tl.ravel(inside))
    return tl.reshape(counts, (rows, BINS))


@triton.jit
def choose(counts, rank):
    """The bin that holds a rank, counted from the last bin down, and how many are in later bins."""
    above = tl.sum(counts, 1)[:, None] - tl.cumsum(counts, 1)
    chosen = (above <= rank[:, None]) & (rank[:, None] < above + counts)
    bins = tl.arange(0, BINS)[None, :]
    return tl.sum(tl.where(chosen, bins, 0), 1), tl.sum(tl.where(chosen, above, 0), 1)
