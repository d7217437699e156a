"""Laplace ranks and sorts on a GPU: the device's own sort, and the Triton kernels of F-sums.

The formulas are those of the reference, whose sums are calls of the operator `fsum`; the roots come
here with their slopes, which the reference would sum up once more.
"""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels.fsum.triton import Sources, laplace_roots_of
from softorder.kernels.order.reference import all_values, rank, rank_vjp, sort_vjp
from softorder.kernels.sort import sort as sort_scores
from softorder.kernels.sort.rows import ascending, rows_of

__all__ = ["rank", "rank_vjp", "sort", "sort_vjp"]


def sort(scores: Tensor, temperature: Tensor, descending: bool) -> tuple[Tensor, ...]:
    """The values in order, and what contract.py lists."""
    values, order = sort_scores(scores)
    rows = rows_of(values, order)
    centre, rest, slope = (torch.empty_like(values) for _ in range(3))
    segment = torch.empty_like(order, dtype=torch.int32)
    if values.numel() > 0:
        x = Sources.of(rows.values, None, None, temperature, rows.count)
        laplace_roots_of(x, rows.places() + 0.5, centre, rest, segment, slope)
    t = all_values(rows, ascending(centre + rest), descending)
    return t, values, order.int(), segment, rest, slope
