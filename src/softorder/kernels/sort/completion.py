"""Results for finite scores, completed by what infinities and NaN mean.

Descending, scores of +inf share the first places, then come the finite ones, then those of -inf,
each at a place of its own, in the order in which they are given. Ascending, the finite ones come
first, then +inf, then -inf: what is absent is last in both directions. NaN spoils its row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Completion:
    """The exceptions among rows of scores, (..., n); the counts are columns."""

    scores: Tensor
    live: Tensor  # what is finite
    certain: Tensor  # how many are +inf
    finite: Tensor
    present: Tensor
    spoiled: Tensor
    descending: bool

    @staticmethod
    def of(scores: Tensor, descending: bool) -> Completion:
        scores = scores.detach()
        certain = (scores == math.inf).sum(-1, keepdim=True)
        present = (scores != -math.inf).sum(-1, keepdim=True)
        spoiled = scores.isnan().any(-1, keepdim=True)
        counts = certain, present - certain, present
        return Completion(scores, scores.isfinite(), *counts, spoiled, descending)

    @property
    def first(self) -> Tensor:
        """The place of the first finite score."""
        return self.certain if self.descending else torch.zeros_like(self.certain)

    def only_finite(self, scores: Tensor) -> Tensor:
        """The scores, 0 in the place of the others."""
        return torch.where(self.live, scores, 0.0)

    # ---- rows of a permutation, (..., k, n)

    def complete_rows(self, p: Tensor) -> Tensor:
        """P from the rows of the finite scores, of which those behind the last may be anything."""
        p = torch.where(self.live.unsqueeze(-2), self._to_places(p), 0.0)
        place = torch.arange(p.shape[-2], device=p.device).unsqueeze(-1)
        lowest = (torch.zeros_like(self.finite) if self.descending else self.finite).unsqueeze(-1)
        crowd = self.certain.unsqueeze(-1)
        share = ((place >= lowest) & (place < lowest + crowd)) / crowd.clamp(min=1).to(p.dtype)
        absent = self.scores == -math.inf
        last = (self.present + absent.cumsum(-1) - 1).unsqueeze(-2)
        p = torch.where((self.scores == math.inf).unsqueeze(-2), share, p)
        p = torch.where(absent.unsqueeze(-2), (place == last).to(p.dtype), p)
        return torch.where(self.spoiled.unsqueeze(-1), math.nan, p)

    def finite_rows(self, p: Tensor) -> Tensor:
        """The way back: the rows of the finite scores, 0 where there is none; so for gradients."""
        source, inside = self._origins(p.shape[-2])
        p = p.gather(-2, source.unsqueeze(-1).expand(*source.shape, p.shape[-1]))
        return torch.where(inside.unsqueeze(-1) & self.live.unsqueeze(-2), p, 0.0)

    def _to_places(self, p: Tensor) -> Tensor:
        source, inside = self._sources(p.shape[-2])
        source = source.unsqueeze(-1).expand(*source.shape, p.shape[-1])
        return torch.where(inside.unsqueeze(-1), p.gather(-2, source), 0.0)

    def _sources(self, k: int) -> tuple[Tensor, Tensor]:
        """Which of the finite scores, in order, belongs to each of k places; whether one does."""
        source = torch.arange(k, device=self.scores.device) - self.first
        inside = (source >= 0) & (source < self.finite)
        return torch.where(inside, source, 0), inside

    def _origins(self, k: int) -> tuple[Tensor, Tensor]:
        """The way back: where, among k places, each of the finite scores is; whether it is."""
        place = torch.arange(k, device=self.scores.device)
        inside = (place + self.first < k) & (place < self.finite) & ~self.spoiled
        return torch.where(inside, place + self.first, 0), inside

    # ---- sorted values, (..., n)

    def complete_values(self, t: Tensor) -> Tensor:
        """Sorted values from those of the finite scores; what is behind these may be anything."""
        source, inside = self._sources(t.shape[-1])
        return self.spoil(torch.where(inside, t.gather(-1, source), self._infinities(t)))

    def finite_values(self, t: Tensor) -> Tensor:
        """The way back, as for rows."""
        source, inside = self._origins(t.shape[-1])
        return torch.where(inside, t.gather(-1, source), 0.0)

    def _infinities(self, t: Tensor) -> Tensor:
        last = -math.inf if self.descending else math.inf
        place = torch.arange(t.shape[-1], device=t.device)
        return torch.where(place >= self.present, last, math.inf).to(t.dtype)

    def complete_places(self, t: Tensor) -> Tensor:
        """Sorted values from those of the finite scores that are in their places already."""
        _, inside = self._sources(t.shape[-1])
        return self.spoil(torch.where(inside, t, self._infinities(t)))

    # ---- ranks, (..., n)

    def complete_ranks(self, ranks: Tensor) -> Tensor:
        """Ranks from those of the finite scores, counted from 1."""
        ranks = ranks + self.first
        middle = (self.certain + 1) / 2  # of the places that the certain ones share
        middle = middle if self.descending else self.finite + middle
        last = (self.present + 1 + self.scores.shape[-1]) / 2
        infinite = torch.where(self.scores > 0, middle, last).to(ranks.dtype)
        return self.spoil(torch.where(self.live, ranks, infinite))

    def ranks_of(self, p: Tensor) -> Tensor:
        """Ranks by a completed P: Σ_j j P_ji, j counting the finite scores."""
        place = torch.arange(1, p.shape[-2] + 1, device=p.device) - self.first
        return self.complete_ranks((p * place.to(p.dtype).unsqueeze(-1)).sum(-2))

    def spoil(self, result: Tensor) -> Tensor:
        return torch.where(self.spoiled, math.nan, result)
