"""Sums over the pairs of a list in which one element is preferred to the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.utils.checkpoint import checkpoint

from softorder import _check

_PAIRS = 2**22  # that are held at a time

#: The sum over pairs of some preferred elements, from the scores, and the pairs as (..., i, j).
Term = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Pairs:
    """Pairs (i, j) of lists with relevance_i > relevance_j.

    Only elements that are preferred to some other are looked at as i: of a list with a few relevant
    ones these, and not its square. A block of them is taken at a time, and computed again on the
    way back, so that memory does not grow with their number.
    """

    relevance: Tensor
    present: Tensor
    preferred: Tensor  # indices (..., m), those of the largest relevance first
    counts: Tensor  # how many pairs each list has, (...); with weights the sum of w_i w_j
    weights: Tensor | None = None  # of the elements: a pair counts w_i w_j

    @staticmethod
    def of(relevance: Tensor, present: Tensor, weights: Tensor | None = None) -> Pairs:
        relevance = torch.where(present, relevance.detach(), -torch.inf)
        lowest = torch.where(present, relevance, torch.inf).amin(-1, keepdim=True)
        above = (relevance > lowest) & present
        ordered = relevance.sort(dim=-1, descending=True, stable=True)
        most = relevance.shape[-1]
        if _check.at_hand(above):
            most = int(above.sum(-1).max()) if above.numel() else 0
        # of what is sorted ascending, those below are counted from the left
        upward = ordered.values.flip(-1).contiguous()
        below = torch.searchsorted(upward, upward)
        if weights is None:
            counts = (below - (~present).sum(-1, keepdim=True)).clamp(min=0).sum(-1)
        else:
            own = weights.gather(-1, ordered.indices.flip(-1))  # 0 for what is not present
            counts = (own * pad(own.cumsum(-1), (1, 0)).gather(-1, below)).sum(-1)
        return Pairs(relevance, present, ordered.indices[..., :most], counts, weights)

    def sum(self, x: Tensor, term: Term) -> Tensor:
        """Σ w_i w_j term over all pairs of every list; x are finite where present."""
        n, m = self.relevance.shape[-1], self.preferred.shape[-1]
        if m == 0:
            return 0.0 * x.sum(-1)  # part of the graph
        per_element = max(self.relevance[..., 0].numel() * n, 1)
        block = max(_PAIRS // per_element, 1)
        parts = self.preferred.split(block, -1)
        if len(parts) == 1:
            return self._block(x, self.preferred, term)
        total = torch.zeros_like(x[..., 0])
        for part in parts:
            total = total + checkpoint(
                self._block, x, part, term, use_reentrant=False, preserve_rng_state=False
            )
        return total

    def _block(self, x: Tensor, i: Tensor, term: Term) -> Tensor:
        grade = self.relevance.gather(-1, i).unsqueeze(-1)
        pair = (grade > self.relevance.unsqueeze(-2)) & self.present.unsqueeze(-2)
        apart = x.gather(-1, i).unsqueeze(-1) - x.unsqueeze(-2)
        each = torch.where(pair, term(apart, i, pair), 0.0)
        if self.weights is not None:
            own = self.weights.gather(-1, i).unsqueeze(-1)
            each = own * self.weights.unsqueeze(-2) * each
        return each.sum((-1, -2))
