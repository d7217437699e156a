"""Rows on their way to a solution: their scores on the device, everything else on the host."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor

from softorder.kernels.threshold.sums import NUMPY, Array


@dataclass
class Rows:
    """The rows still to be solved: their scores, and NumPy arrays of one entry per row."""

    x: Tensor
    index: Array  # where the row came from
    k: Array
    tau: Array
    high: Array  # b = high + low, an unevaluated sum
    low: Array
    left: Array  # the root lies between b + left and b + right
    right: Array
    left_excess: Array  # Sums.excess there
    right_excess: Array
    by: Array  # how far to move b next; NaN when there is no good idea
    residual: Array  # after the last pass, NaN when there was none
    previous: Array  # |excess| after the last pass, inf when it says nothing
    older: Array  # the same one pass before
    width: Array  # right - left after the last pass
    valid: Array  # how many scores are not -inf; NaN if one is NaN
    certain: Array  # how many are +inf
    classified: Array  # whether valid and certain are known
    selected: Array  # whether left and right come from a selection
    sweeps: Array

    @staticmethod
    def of(x: Tensor, k: Array, tau: Array) -> Rows:
        count, n = x.shape
        zeros, infinite = np.zeros(count), np.full(count, math.inf)
        no = np.zeros(count, dtype=bool)
        start = [zeros.copy(), zeros.copy(), -infinite, infinite.copy(), infinite.copy(), -infinite]
        later = [
            zeros.copy(),
            zeros * math.nan,
            infinite,
            infinite.copy(),
            infinite.copy(),
            np.full(count, float(n)),
            zeros.copy(),
            no,
            no.copy(),
        ]
        columns = [np.arange(count), k, tau, *start, *later, zeros]
        return Rows(x, *columns)

    def __len__(self) -> int:
        return len(self.k)

    def take(self, which: Array) -> Rows:
        if which.all():
            return self
        x = self.x[torch.from_numpy(which).to(self.x.device)]
        return Rows(x, *(getattr(self, f.name)[which] for f in fields(self)[1:]))

    def put(self, which: Array, other: Rows) -> None:
        for field in fields(self)[1:]:
            getattr(self, field.name)[which] = getattr(other, field.name)

    def set_b(self, b: Array, plus: Array) -> None:
        self.high, self.low = b, np.zeros_like(b)
        self.move(plus)

    def move(self, by: Array) -> None:
        """Moves b; the bracket, which is relative to it, stays where it was."""
        total = self.high + by
        part = total - self.high
        tail = self.low + ((self.high - (total - part)) + (by - part))
        self.high = total + tail
        self.low = tail - (self.high - total)
        self.left, self.right = self.left - by, self.right - by

    def split(self) -> tuple[Array, Array]:
        """b as centre + rest in the dtype of the scores."""
        centre = self.high.astype(NUMPY[self.x.dtype])
        return centre, ((self.high - centre) + self.low).astype(centre.dtype)

    def columns(self, *values: Array) -> Tensor:
        """Arrays as columns beside x, in its dtype and on its device."""
        stacked = np.array(values, dtype=NUMPY[self.x.dtype])
        return torch.from_numpy(stacked).to(self.x.device).unsqueeze(-1)


def classify(rows: Rows) -> None:
    x = rows.x
    out, certain = ((x == v).sum(-1) for v in (-math.inf, math.inf))
    nan = torch.where(x.isnan().any(-1), math.nan, 0.0).double()
    totals = torch.stack([x.shape[1] - out + nan, certain.double()]).cpu().numpy()
    rows.valid, rows.certain = totals[0], totals[1]
    rows.classified = np.ones(len(rows), dtype=bool)
    rows.sweeps += 1


def moments(x: Tensor, count: Array, finite: bool) -> tuple[Array, Array]:
    """Mean, and a deviation that overflows late, of the finite scores of every row."""
    nought = x if finite else x.nan_to_num(0.0, 0.0, 0.0)
    mean = nought.sum(-1, dtype=torch.float64).cpu().numpy() / count
    z = x - torch.from_numpy(mean).to(x.device, x.dtype).unsqueeze(-1)
    z = z if finite else z.nan_to_num_(0.0, 0.0, 0.0)
    return mean, 1.25 * z.abs_().sum(-1, dtype=torch.float64).cpu().numpy() / count


def ranked(x: Tensor, rank: Array) -> tuple[Array, Array]:
    """The score that exactly `rank` others exceed, and the one before it, of every row."""
    kinds = np.unique(rank).astype(int)
    if len(kinds) == 1:
        found = parted(x, kinds.item())
    else:
        index = torch.from_numpy(rank).long().to(x.device).unsqueeze(-1)
        ordered = x.sort(-1, descending=True).values
        found = ordered.gather(-1, torch.cat([index, (index - 1).clamp(min=0)], -1))
    low, above = found.double().cpu().numpy().T
    return low, above


def parted(x: Tensor, rank: int) -> Tensor:
    """The two scores that a hard choice of the `rank` largest parts: the best other, the last."""
    chosen = x.topk(rank + 1, sorted=False).values
    return chosen.topk(min(2, rank + 1), largest=False).values.expand(*x.shape[:-1], 2)
