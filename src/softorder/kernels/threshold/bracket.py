"""Brackets around a threshold: by selection, when the model of the sum fails, and narrowed."""

from __future__ import annotations

import math

import numpy as np
import torch

from softorder.densities import Density
from softorder.kernels.threshold import single_row
from softorder.kernels.threshold.state import Rows, ranked
from softorder.kernels.threshold.sums import Array


def select(rows: Rows, law: Density) -> None:
    """Puts b where the root would be if only the nearest scores counted.

    The bracket holds whatever the others add: x_(⌊k⌋+1) - ζτ <= b <= x_(⌈k⌉) + ζ'τ.
    """
    rank = rows.k - rows.certain
    whole = np.floor(rank)
    part = rank - whole
    count = rows.valid - rows.certain
    lowest, next_above = ranked(rows.x, rows.certain + whole)
    rows.sweeps += single_row.SELECTION
    integer = part == 0
    width = np.where(integer, next_above - lowest, 0.0)
    middle = 0.5 * width - law.middle * rows.tau
    offset = np.where(integer, middle, -rows.tau * quantile(law, np.where(integer, 0.5, part)))
    low_share = np.minimum(0.5, (1 - part) / (whole + 1))
    high_share = np.minimum(0.5, np.where(integer, 1, part) / (count - np.ceil(rank) + 1))
    rows.set_b(lowest, offset)
    rows.left = -rows.tau * quantile(law, 1 - low_share) - offset
    rows.right = width - rows.tau * quantile(law, high_share) - offset
    rows.left_excess = np.full(len(rows), math.inf)
    rows.right_excess = -rows.left_excess
    rows.by = np.zeros(len(rows))
    rows.residual = np.full(len(rows), math.nan)
    rows.previous = rows.older = np.full(len(rows), math.inf)
    rows.width = rows.right - rows.left
    rows.selected = np.ones(len(rows), dtype=bool)


def narrow(rows: Rows, excess: Array) -> None:
    """The sum decreases in b: the sign of the excess tells on which side of b the root is."""
    up, down = (excess >= 0) & (rows.left <= 0), (excess <= 0) & (rows.right >= 0)
    rows.left, rows.left_excess = (
        np.where(up, 0.0, rows.left),
        np.where(up, excess, rows.left_excess),
    )
    rows.right = np.where(down, 0.0, rows.right)
    rows.right_excess = np.where(down, excess, rows.right_excess)


def between(rows: Rows, turn: int) -> Array:
    """A place inside the bracket: the false position and the middle by turns."""
    share = rows.left_excess / (rows.left_excess - rows.right_excess)
    known = np.isfinite(rows.left_excess) & np.isfinite(rows.right_excess) & bool(turn % 3)
    share = np.where(known, np.clip(share, 0.05, 0.95), 0.5)
    return rows.left + (rows.right - rows.left) * share


def goes_back(rows: Rows, excess: Array) -> Array:
    """Whether the next place is almost the other end of the bracket, known to be no better."""
    end = np.where(excess > 0, rows.right, rows.left)
    there = np.where(excess > 0, rows.right_excess, rows.left_excess)
    near = np.abs(end - rows.by) < 0.02 * rows.width
    return near & np.isfinite(there) & (np.abs(there) > 0.1 * np.abs(excess))


def quantile(law: Density, p: Array) -> Array:
    """F^-1(p), in NumPy."""
    return law.quantile(torch.from_numpy(p)).numpy()
