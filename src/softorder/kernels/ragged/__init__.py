"""Rows of different lengths, one behind another."""

from softorder.kernels.ragged.bucketing import Bucket, buckets, own_ranks, per_row, per_score
from softorder.kernels.ragged.contract import (
    backward,
    forward,
    placement,
    rank,
    sort,
    sorted_rows,
    sums_serve,
    threshold,
)
from softorder.kernels.ragged.segments import Segments

__all__ = [
    "Bucket",
    "Segments",
    "backward",
    "buckets",
    "forward",
    "own_ranks",
    "per_row",
    "per_score",
    "placement",
    "rank",
    "sort",
    "sorted_rows",
    "sums_serve",
    "threshold",
]
