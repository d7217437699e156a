"""Methods that know finite scores only, completed by what infinities, absence and NaN mean."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels.sorted_rows import SortedRows, sort_rows
from softorder.methods._base import Method


class FiniteMethod(Method):
    """A family gives hooks for finite scores, of which only what is `live` (None: all) takes part.

    Scores of +inf are certain of their places, those of -inf have the last ones.
    """

    def _rows(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        """The first k rows (..., k, n) of P; those behind the live elements may hold anything."""
        raise NotImplementedError

    def _values(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool
    ) -> Tensor:
        """Sorted, first the live ones; the others may be anything."""
        raise NotImplementedError

    def _ranks(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool
    ) -> Tensor:
        """From 1 to the number of live elements; those of the others may be anything."""
        raise NotImplementedError

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        rows = _exceptions(scores)
        if rows is None:
            return self._rows(scores, None, temperature, descending, k)
        x, live = _finite(scores)
        source, inside = _sources(rows, descending, k)
        p = self._rows(x, live, temperature, descending, k)
        p = p.gather(-2, source.unsqueeze(-1).expand_as(p))
        p = torch.where(inside.unsqueeze(-1) & live.unsqueeze(-2), p, 0.0)
        return rows.with_certain(scores, p, descending)

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        rows = _exceptions(scores)
        if rows is None:
            return self._values(scores, None, temperature, descending)
        x, live = _finite(scores)
        source, inside = _sources(rows, descending, rows.n)
        t = self._values(x, live, temperature, descending).gather(-1, source)
        last = -math.inf if descending else math.inf
        infinities = torch.where(rows.places() >= rows.available, last, math.inf).to(t.dtype)
        return rows.spoil(torch.where(inside, t, infinities))

    def soft_rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        rows = _exceptions(scores)
        if rows is None or rows.finite is None or rows.present is None:
            return self._ranks(scores, None, temperature, descending)
        x, live = _finite(scores)
        ranks = self._ranks(x, live, temperature, descending)
        certain, last = rows.present - rows.finite, (rows.present + 1 + rows.n) / 2
        middle = (certain + 1) / 2  # of the places that the certain ones share
        ranks, middle = (ranks + certain, middle) if descending else (ranks, rows.finite + middle)
        infinite = torch.where(scores > 0, middle, last).to(ranks.dtype)
        return rows.spoil(torch.where(live, ranks, infinite))

    def soft_topk(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        """Σ_j clamp(k - j + 1, 0, 1) P_ji in descending order: k rows, the last one in part."""
        return self._weighted_rows(scores, row_weights(k, scores), temperature)

    def _weighted_rows(self, scores: Tensor, weights: Tensor, temperature: Tensor) -> Tensor:
        p = self.soft_permutation(scores, temperature, True, weights.shape[-1])
        p = (p * weights.unsqueeze(-1)).sum(-2)
        return torch.where(scores == -math.inf, 0.0, p)


class MatrixMethod(FiniteMethod):
    """P first; from it sort = P x and rank_i = Σ_j j P_ji."""

    def _values(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool
    ) -> Tensor:
        p = self._rows(x, live, temperature, descending, x.shape[-1])
        return (p * x.unsqueeze(-2)).sum(-1)

    def _ranks(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool
    ) -> Tensor:
        n = x.shape[-1]
        p = self._rows(x, live, temperature, descending, n)
        place = torch.arange(1, n + 1, device=x.device)
        if live is not None:
            place = torch.where(place <= live.sum(-1, keepdim=True), place, 0)
        return (p * place.to(p.dtype).unsqueeze(-1)).sum(-2)


def row_weights(k: Tensor, scores: Tensor, rows: int | None = None) -> Tensor:
    """How much of row j = 0, 1, ... is among the first k: clamp(k - j, 0, 1).

    For so many rows; without a number, until it is 0 if that can be seen.
    """
    n = scores.shape[-1] if rows is None else rows
    if rows is None and _check.eager():
        n = max(math.ceil(k.detach().max().item()), 1) if k.numel() else 1
    k = torch.where(k > 0, k, 0.0)  # at 0 nothing moves
    place = torch.arange(n, device=scores.device)
    return (k.to(scores.device).unsqueeze(-1) - place).clamp(0, 1).to(scores.dtype)


def _exceptions(scores: Tensor) -> SortedRows | None:
    """The rows in order; None if it is known that every score is finite."""
    if _check.eager() and _check.finite(scores):
        return None
    return sort_rows(scores)


def _finite(scores: Tensor) -> tuple[Tensor, Tensor]:
    live = scores.isfinite()
    return torch.where(live, scores, 0.0), live


def _sources(rows: SortedRows, descending: bool, k: int) -> tuple[Tensor, Tensor]:
    """Which row of the finite scores belongs to each of k places, and whether one does."""
    place = torch.arange(k, device=rows.order.device).expand(*rows.order.shape[:-1], k)
    if rows.finite is None or rows.present is None:
        return place, torch.ones_like(place, dtype=torch.bool)
    source = place - (rows.present - rows.finite) if descending else place
    inside = (source >= 0) & (source < rows.finite)
    return torch.where(inside, source, 0), inside
