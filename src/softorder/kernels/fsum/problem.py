"""The arguments of an F-sum in plain torch, and where its targets lie among its sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor


@dataclass
class Split:
    """Places on the real line, each an unevaluated sum, in float64."""

    value: Tensor
    rest: Tensor | None = None

    @staticmethod
    def of(value: Tensor, rest: Tensor | None = None) -> Split:
        return Split(value.double(), None if rest is None else rest.double())

    def map(self, function: Callable[[Tensor], Tensor]) -> Split:
        return Split(function(self.value), None if self.rest is None else function(self.rest))

    def __getitem__(self, where: Any) -> Split:
        return self.map(lambda v: v[where])

    def at(self, place: Tensor) -> Split:
        return self.map(lambda v: v.gather(-1, place))

    def moved(self, by: Tensor) -> Split:
        rest = by if self.rest is None else self.rest + by
        return Split(self.value, rest.expand(self.value.shape))

    def minus(self, other: Split) -> Tensor:
        difference = self.value - other.value
        if self.rest is not None:
            difference = difference + self.rest
        return difference if other.rest is None else difference - other.rest

    @property
    def size(self) -> int:
        return self.value.shape[-1]


@dataclass
class Problem:
    """The arguments of an F-sum, absent weights and counts filled in."""

    x: Split  # (..., m); beyond the count, the last source that counts
    w: Tensor  # (..., m); beyond the count, 0
    t: Split  # (..., n)
    tau: Tensor  # (..., 1)
    sources: Tensor  # (..., 1) or (), how many count
    targets: Tensor | None

    @staticmethod
    def of(
        sources: Split,
        targets: Split,
        weights: Tensor | None,
        temperature: Tensor,
        source_count: Tensor | None,
        target_count: Tensor | None,
    ) -> Problem:
        x, rows, device = sources, sources.value.shape[:-1], sources.value.device
        w = torch.ones_like(x.value) if weights is None else weights.double()
        count = torch.full((), x.size, device=device)
        if source_count is not None:
            count = source_count.expand(rows).unsqueeze(-1)
            x, w = _cut(x, w, count)
        tau = temperature.to(device).expand(rows).unsqueeze(-1)
        last = None if target_count is None else target_count.expand(rows).unsqueeze(-1)
        return Problem(x, w, targets, tau, count, last)

    def offsets(self, place: Tensor) -> Tensor:
        """(t_j - x_i)/τ for one source i per target."""
        return self.t.minus(self.x.at(place)) / self.tau

    def finish(self, total: Tensor) -> Tensor:
        if self.targets is None:
            return total
        return torch.where(places(total) < self.targets, total, 0.0)


def _cut(x: Split, w: Tensor, count: Tensor) -> tuple[Split, Tensor]:
    present = places(w) < count
    if x.size > 0:
        last = torch.minimum(places(w), count - 1).clamp(min=0)
        x = x.at(last).map(lambda v: torch.where(count > 0, v, 0.0))
    return x, torch.where(present, w, 0.0)


def places(like: Tensor) -> Tensor:
    return torch.arange(like.shape[-1], device=like.device)


def found_below(x: Split, t: Split, count: Tensor, right: bool) -> Tensor:
    """How many of the first sources are below t, or not above it (right)."""
    if x.rest is None and t.rest is None:
        place = torch.searchsorted(x.value.contiguous(), t.value.contiguous(), right=right)
        return torch.minimum(place, count)
    # No sum is ever rounded: a bisection that compares differences.
    low = torch.zeros_like(t.value, dtype=torch.int64)
    high = low + count
    for _ in range(x.size.bit_length()):
        middle = (low + high) // 2
        distance = t.minus(x.at(middle.clamp(max=x.size - 1)))
        below = ((distance >= 0) if right else (distance > 0)) & (low < high)
        low, high = torch.where(below, middle + 1, low), torch.where(below, high, middle)
    return low


def prefix_sums(w: Tensor) -> Tensor:
    """Σ_{i < j} w_i for j = 0..m."""
    return torch.nn.functional.pad(w.cumsum(-1), (1, 0))


def ascending(values: Tensor, count: Tensor) -> Tensor:
    """Values that ascend but for roundings, made to ascend; +inf beyond the count."""
    return torch.where(places(values) < count, values, torch.inf).cummax(-1).values
