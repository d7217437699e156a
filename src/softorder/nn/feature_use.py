from __future__ import annotations

import torch
from torch import Tensor, nn

from softorder import _check


class FeatureUse(nn.Module):
    """Counts how often each of n features is not 0, and for how long it has been: who is dead?

    A feature that is never chosen gets no gradient from a hard top-k and stays as it is. Codes
    (..., n) pass through unchanged; every row counts as one.

    Args:
        features: n.

    >>> import torch, softorder as so
    >>> use = so.nn.FeatureUse(3)
    >>> _ = use(torch.tensor([[1.0, 0.0, 0.0], [2.0, 0.0, 0.5]]))
    >>> use.rate(), use.dead(after=2)
    (tensor([1.0000, 0.0000, 0.5000]), tensor([False,  True, False]))
    """

    counts: Tensor  #: in how many rows each feature was not 0
    idle: Tensor  #: how many rows have come since
    rows: Tensor  #: how many there were

    def __init__(self, features: int) -> None:
        super().__init__()
        _check.count("features", features, least=1)
        self.features = features
        self.register_buffer("counts", torch.zeros(features, dtype=torch.int64))
        self.register_buffer("idle", torch.zeros(features, dtype=torch.int64))
        self.register_buffer("rows", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def forward(self, codes: Tensor) -> Tensor:
        _check.layers.last_axis("codes", codes, self.features)
        fired = (codes != 0).flatten(0, -2) if codes.dim() > 1 else (codes != 0).unsqueeze(0)
        rows = len(fired)
        # the row after which a feature was silent: the last one that has it
        last = (fired * torch.arange(1, rows + 1, device=fired.device).unsqueeze(-1)).amax(0)
        self.idle.copy_(torch.where(last > 0, rows - last, self.idle + rows))
        self.counts.add_(fired.sum(0))
        self.rows.add_(rows)
        return codes

    def rate(self) -> Tensor:
        """The part of the rows in which each feature was not 0; NaN before the first."""
        return self.counts / self.rows

    def dead(self, after: int) -> Tensor:
        """Which features have been 0 for so many rows, or more."""
        _check.count("after", after, least=1)
        return self.idle >= after

    def reset(self) -> None:
        for count in (self.counts, self.idle, self.rows):
            count.zero_()

    def extra_repr(self) -> str:
        return f"features={self.features}"
