"""Which score enters a network on which wire."""

from __future__ import annotations

import torch
from torch import Tensor


class Wires:
    """Scores in the order of their wires: those that are not live are on the last ones."""

    def __init__(self, scores: Tensor, live: Tensor) -> None:
        self.count = live.sum(-1)
        self.order = torch.argsort((~live).to(torch.int8), dim=-1, stable=True)
        self.scores = scores.gather(-1, self.order)

    def to_origin(self, p: Tensor) -> Tensor:
        """The columns of (..., k, wires) at the places of the scores."""
        return torch.empty_like(p).scatter(-1, self._columns(p), p)

    def to_wires(self, p: Tensor) -> Tensor:
        """The way back."""
        return p.gather(-1, self._columns(p))

    def _columns(self, p: Tensor) -> Tensor:
        return self.order.unsqueeze(-2).expand_as(p)
