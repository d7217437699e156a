"""Means over batches, and over the ranks of a process group."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, distributed, nn

from softorder import _check


class Mean(nn.Module):
    """A sum and what it is divided by, for one number or several: buffers that batches add to.

    `compute` adds those of all ranks where torch.distributed is at work, and changes no rank's own:
    so it has to be called on all of them.
    """

    total: Tensor
    count: Tensor

    def __init__(self, size: int, *, group: Any = None, sync_on_compute: bool = True) -> None:
        super().__init__()
        _check.flag("sync_on_compute", sync_on_compute)
        self.group = group
        self.sync_on_compute = sync_on_compute
        zeros = torch.zeros(size, dtype=torch.float64)
        self.register_buffer("total", zeros, persistent=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.float64), persistent=False)

    def add(self, total: Tensor, count: Tensor) -> None:
        self.total = self.total + total.to(self.total)
        self.count = self.count + count.to(self.count)

    def mean(self) -> Tensor:
        """Of everything since the last reset; NaN without anything."""
        both = torch.cat([self.total, self.count.unsqueeze(0)])
        ranks = distributed.is_available() and distributed.is_initialized()
        if self.sync_on_compute and ranks:
            distributed.all_reduce(both, group=self.group)
        return both[:-1] / both[-1]

    def reset(self) -> None:
        """Forgets everything."""
        self.total, self.count = torch.zeros_like(self.total), torch.zeros_like(self.count)
