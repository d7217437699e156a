"""Methods that give a soft permutation P, from which everything else follows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels.sort.completion import Completion
from softorder.relaxations._base import Method


class MatrixMethod(Method):
    """A family gives `soft_permutation`. Then, with the scores x,

        sort = P x        rank_i = Σ_j j P_ji        topk_i = Σ_j clamp(k - j + 1, 0, 1) P_ji

    the last one for a descending P: k rows, the last one in part.
    """

    looks_at_k = True

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        raise NotImplementedError

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        p = self.soft_permutation(scores, temperature, descending, scores.shape[-1])
        # Rows of P sum to 1, so it may be any place: near the scores little cancels.
        middle = _middle(scores.detach())
        if _check.known_finite(scores):
            return middle + (p * (scores - middle).unsqueeze(-2)).sum(-1)
        return middle + Completion.of(scores, descending).values_of(p, scores - middle)

    def soft_rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        p = self.soft_permutation(scores, temperature, descending, scores.shape[-1])
        if _check.known_finite(scores):
            place = torch.arange(1, scores.shape[-1] + 1, device=p.device, dtype=p.dtype)
            return (p * place.unsqueeze(-1)).sum(-2)
        return Completion.of(scores, descending).ranks_of(p)

    def soft_topk(
        self, scores: Tensor, k: Tensor, temperature: Tensor, most: int | None = None
    ) -> Tensor:
        return self.weighted_rows(scores, row_weights(k, scores, most), temperature)

    def weighted_rows(self, scores: Tensor, weights: Tensor, temperature: Tensor) -> Tensor:
        """Σ_j w_j P_ji for the first rows of a descending P."""
        p = self.soft_permutation(scores, temperature, True, weights.shape[-1])
        if _check.known_finite(scores):
            return (p * weights.unsqueeze(-1)).sum(-2)
        spoiled = scores.isnan().any(-1, keepdim=True)
        p = torch.where(spoiled.unsqueeze(-1), 0.0, p)  # or weights would learn from NaN
        p = (p * weights.unsqueeze(-1)).sum(-2)
        return torch.where(spoiled, math.nan, torch.where(scores == -math.inf, 0.0, p))


def _middle(scores: Tensor) -> Tensor:
    """Of the finite scores of every row, a column; 0 where there are none."""
    finite = scores.isfinite()
    low, high = (torch.where(finite, scores, sign * math.inf) for sign in (1, -1))
    middle = 0.5 * low.amin(-1, keepdim=True) + 0.5 * high.amax(-1, keepdim=True)
    return torch.where(middle.isfinite(), middle, 0.0)


def row_weights(k: Tensor, scores: Tensor, rows: int | None = None) -> Tensor:
    """How much of row j = 0, 1, ... is among the first k: clamp(k - j, 0, 1).

    For so many rows; without a number, until it is 0 if that can be seen.
    """
    n = scores.shape[-1] if rows is None else rows
    if rows is None and _check.at_hand(k):
        n = max(math.ceil(k.detach().max().item()), 1) if k.numel() else 1
    k = torch.where(k > 0, k, 0.0)  # at 0 nothing moves
    place = torch.arange(n, device=scores.device)
    return (k.to(scores.device).unsqueeze(-1) - place).clamp(0, 1).to(scores.dtype)
