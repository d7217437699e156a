"""Methods that give a soft permutation P, from which everything else follows."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels.formulas import factor_of, multiplied, with_gradient_of
from softorder.kernels.sort import sort
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
        n = scores.shape[-1]
        factor = factor_of(scores) if n else None
        if factor is not None:
            scores, temperature = (
                with_gradient_of(factor * scores, scores),
                with_gradient_of(multiplied(temperature, factor), temperature),
            )
        p = self.soft_permutation(scores, temperature, descending, n)
        t = sorted_by(p, scores, descending)
        return t if factor is None else with_gradient_of(t / factor, t)

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


def sorted_by(p: Tensor, scores: Tensor, descending: bool) -> Tensor:
    """P x for a P whose rows sum to 1, completed by what infinities and NaN mean.

    A row is measured from the score in its place, near which it is large: little cancels.
    """
    if _check.known_finite(scores):
        start = _in_order(scores, descending)
        return start + _beside(p, scores, start)
    exceptions = Completion.of(scores, descending)
    start = exceptions.complete_values(_in_order(scores, descending, exceptions.live))
    start = torch.where(start.isfinite(), start, 0.0)
    p = torch.where(exceptions.spoiled.unsqueeze(-1), 0.0, p)  # that no gradient passes
    moved = _beside(p, exceptions.only_finite(scores), start)
    return exceptions.complete_places(start + moved)


def _in_order(scores: Tensor, descending: bool, live: Tensor | None = None) -> Tensor:
    """The scores in order, those that are not live behind the others."""
    x = -scores.detach() if descending else scores.detach()
    x = sort(x if live is None else torch.where(live, x, math.inf)).values
    return -x if descending else x


def _beside(p: Tensor, scores: Tensor, start: Tensor) -> Tensor:
    """Σ_i P_ji (x_i - start_j). What has no part in a row may be too far away for a product."""
    gap = torch.where(p > 0, scores.unsqueeze(-2), start.unsqueeze(-1)) - start.unsqueeze(-1)
    return (p * gap).sum(-1)


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
