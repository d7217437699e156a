"""Sums over rows of different lengths, in plain torch.

Every score is a row of its own here, (total, 1), and a row of the user's is cut among them: what
`shards.py` does for rows that are cut among ranks. So the formulas that take sums over such rows
serve these as well, and nothing has to be padded or waited for.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder.kernels.shards import Whole


class Segments(Whole):
    """Rows [offsets_i, offsets_{i+1}) of `total` scores."""

    def __init__(self, offsets: Tensor, total: int) -> None:
        self.offsets, self.size = offsets, total
        self._row: Tensor | None = None

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.offsets.shape[0] - 1

    @property
    def row(self) -> Tensor:
        """Which row every score is in. Found once: a cached_property has a lock, and no graph."""
        if self._row is None:
            self._row = self._repeated(torch.arange(self.count, device=self.offsets.device))
        return self._row

    @property
    def begin(self) -> Tensor:
        """Where the row of every score begins."""
        return self._repeated(self.offsets[:-1])

    @property
    def place(self) -> Tensor:
        """Which place every score has in its row, from 0."""
        every = torch.arange(self.size, device=self.offsets.device)
        return every.sub_(self.begin)

    def _repeated(self, numbers: Tensor) -> Tensor:
        return numbers.repeat_interleave(self.offsets.diff(), output_size=self.size)

    def spread(self, numbers: Tensor) -> Tensor:
        """Numbers of rows, on the last axis, for every score; one for all rows stays as it is."""
        return numbers[..., self.row] if numbers.dim() else numbers

    def within(self, values: Tensor, count: Tensor | None) -> Tensor:
        """Values in the first `count` places of every row, and 0 behind them."""
        return values if count is None else torch.where(self.place < self.spread(count), values, 0)

    def add_up(self, values: Tensor) -> Tensor:
        """The sums over the rows (count,) of numbers of all scores (total,), in float64."""
        wide = torch.float32 if values.device.type == "mps" else torch.float64
        return values.new_zeros(self.count, dtype=wide).index_add(0, self.row, values.to(wide))

    def largest(self, values: Tensor) -> Tensor:
        """The maxima likewise, without a derivative; -inf for an empty row."""
        nothing = values.new_full((self.count,), -math.inf)
        return nothing.scatter_reduce(0, self.row, values.detach(), "amax")

    def total(self, values: Tensor) -> Tensor:
        return self.spread(self.add_up(values.squeeze(-1))).to(values.dtype).unsqueeze(-1)

    def most(self, values: Tensor) -> Tensor:
        return self.spread(self.largest(values.squeeze(-1))).unsqueeze(-1)
