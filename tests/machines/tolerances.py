"""By how much an answer may be off: one table for all machines.

An error is counted in a unit that belongs to the quantity (the last column), row by row. The bounds
are at least twice, mostly ten times the largest errors seen on any machine and SIMD level, or a few
units in the last place where these are smaller. With NeuralSort it is plain torch in float64 that
is off, by up to 1e-12: its logits are differences of large sums.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

#: answer: (float32, float64, what is counted as 1)
TABLE: dict[str, tuple[float, float, str]] = {
    "topk p": (1e-6, 1e-14, "1"),
    "topk threshold": (5e-7, 1e-14, "what moves the sum of p by max(1, k), and |b|"),
    "topk gradient": (
        5e-6,
        1e-13,
        "the row's largest gradient, and 1/τ; of τ: itself too; of k: 1",
    ),
    "fsum": (5e-7, 1e-14, "the row's largest sum, and 1"),
    "fsum of f''": (5e-7, 1e-12, "the same; boxes promise a hundred times less: smooth_sum.hpp"),
    "fsum root": (5e-7, 1e-14, "the row's largest root, and τ"),
    "soft rank": (5e-7, 1e-14, "the row's largest rank"),
    "soft rank gradient": (5e-7, 1e-13, "the row's largest gradient, and 1/τ"),
    "soft rank temperature": (1e-12, 1e-12, "the length of the row, over τ"),
    "soft sort temperature": (5e-7, 1e-12, "the length of the row"),
    "soft sort": (5e-7, 1e-14, "the row's largest value, and τ"),
    "soft sort gradient": (1e-6, 1e-13, "the row's largest gradient, and 1"),
    "permutation": (5e-7, 1e-14, "1"),
    "permutation gradient": (5e-7, 1e-13, "the row's largest gradient, and 1/τ"),
    "placement": (1e-11, 1e-11, "the row's largest loss, and 1"),
    "placement gradient": (5e-7, 1e-11, "the row's largest gradient, and 1/τ"),
    "placement temperature": (1e-10, 1e-10, "the length of the row, over τ"),
    "projection": (5e-7, 1e-13, "the row's largest value, and 1"),
    "projection gradient": (5e-7, 1e-13, "the row's largest gradient, and 1"),
    "network": (5e-6, 1e-14, "the row's largest value, and 1"),
    "network gradient": (1e-5, 1e-13, "the row's largest gradient, and 1"),
    "row softmax": (1e-6, 2e-12, "1"),
    "row softmax gradient": (1e-5, 2e-11, "the row's largest gradient, and 1"),
    "one entry": (1e-5, 1e-13, "the row's largest |log p|, and 1/τ"),
    "one entry gradient": (2e-5, 1e-12, "the row's largest gradient, and 1/τ; of τ: itself too"),
    "pairs": (1e-6, 1e-14, "the sum itself, whose terms are all positive"),
    "pairs gradient": (5e-6, 1e-14, "the row's largest gradient"),
    "pareto": (1e-11, 1e-11, "the row's largest weight, or |log P|, and 1"),
    "pareto gradient": (1e-11, 1e-11, "the row's largest gradient, and 1"),
    "subsets": (1e-10, 1e-13, "|log P|, and 1"),
    "transport": (1e-9, 1e-9, "the row's largest threshold less its centre over ε, and 1"),
    "transport plan": (1e-12, 1e-12, "the row's largest |log p|, and 1"),
    "transport gradient": (1e-10, 1e-10, "the row's largest gradient, and 1"),
    "subsets gradient": (2e-6, 1e-13, "the row's largest gradient, and 1"),
}


def allowed(answer: str, dtype: torch.dtype, unit: Tensor) -> Tensor:
    """By how much each row of an answer may be off, for its unit (rows,)."""
    narrow, wide, _ = TABLE[answer]
    return (wide if dtype == torch.float64 else narrow) * unit.double()


def largest(values: Tensor, least: Tensor | float = 1.0) -> Tensor:
    """The largest finite number of every row, in absolute value; at least so much."""
    rows = values.detach().double().reshape(len(values), -1).abs()
    top = torch.where(rows.isfinite(), rows, 0.0).amax(-1)
    return torch.maximum(top, torch.as_tensor(least, dtype=torch.float64).expand_as(top))


def where_defined(tolerance: Tensor, defined: Tensor) -> Tensor:
    """No limit for rows whose answer is not unique: at a kink, or where slopes underflow."""
    if defined.double().mean() < 0.3:
        raise ValueError("most rows of this call have no unique answer: choose other inputs")
    return torch.where(defined, tolerance, math.inf)
