"""Losses of rows of different lengths, one behind another, without padding."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check, ragged
from softorder.kernels.ragged import Bucket, sorted_rows
from softorder.losses._log_sums import nothing
from softorder.losses._mass import operator_for
from softorder.losses._precision import dtype_of_loss
from softorder.ops._method import method_of
from softorder.ragged import _jagged
from softorder.ragged._rows import Number, Rows
from softorder.relaxations import ThresholdMethod
from softorder.relaxations import ragged as relaxations


@dataclass(frozen=True)
class Candidates:
    """Rows of candidates, and some of them that may be right: one of every row, or all."""

    rows: Rows
    place: Tensor  # of those among all values
    row: Tensor  # and the rows that they are in
    kept: Tensor  # of what is not ignored; the others may have any place
    dtype: torch.dtype

    @staticmethod
    def of(scores: Any, target: Tensor, ignore_index: int) -> Candidates:
        rows = Rows.checked(*_jagged.unpack(scores, 1), None)
        _check.ragged.candidates(target, rows.offsets, ignore_index)
        kept = target != ignore_index
        last = max(rows.values.shape[0] - 1, 0)
        place = (rows.offsets[:-1] + torch.where(kept, target.long(), 0)).clamp(max=last)
        row = torch.arange(rows.count, device=place.device)
        return Candidates(rows, place, row, kept, dtype_of_loss(rows.values))

    def largest(self, m: int | None) -> Candidates:
        """The same where only the m largest compete, the right one always among them."""
        if m is None:
            return self
        segments, values = self.rows.segments, self.rows.values
        order = sorted_rows(values, self.rows.offsets)[1] + segments.begin
        behind = segments.spread(self.rows.offsets[1:]) - 1 - torch.arange(len(order))
        place = torch.empty_like(order).scatter(0, order, behind)  # from the top, of every score
        right = torch.zeros_like(values, dtype=torch.bool).index_fill(0, self.place, True)
        others = segments.spread(m - (place[self.place] >= m).long())
        chosen = (place < others) | right
        rows = Rows(torch.where(chosen, values, -math.inf), self.rows.offsets)
        return replace(self, rows=rows)

    def every(self) -> Candidates:
        """The same as if each of those that take part were the right one."""
        place = (self.rows.values > -math.inf).nonzero().squeeze(-1)
        row = self.rows.segments.row[place]
        return replace(self, place=place, row=row, kept=self.kept[row])

    def means(self, values: Tensor) -> Tensor:
        """Of numbers of these, the mean in every row."""
        nothing = values.new_zeros(self.rows.count)
        count = nothing.index_add(0, self.row, torch.ones_like(values))
        return nothing.index_add(0, self.row, values) / count.clamp(min=1)

    def log_masses(self, ks: tuple[int, ...], method: object, temperature: Number) -> Tensor:
        """log S_k of the right ones, (..., len(ks)); log 1 where a row has no more than k."""
        operator, log = _operator(method)
        settings = {"method": method, "temperature": temperature}
        given = self.rows.values.double(), self.rows.offsets
        found = [operator(*given, k, **settings)[self.place] for k in ks]
        each = torch.stack(found, -1)
        return each if log else each.log()

    def log_softmax(self) -> Tensor:
        """log softmax(x) of the right ones."""
        x, segments = self.rows.values.double(), self.rows.segments
        top = segments.largest(torch.where(x.isfinite(), x, -torch.inf))
        top = torch.where(top.isfinite(), top, 0.0)
        total = segments.add_up((x - segments.spread(top)).exp())[self.row]
        return x[self.place] - top[self.row] - torch.where(self.kept, total, 1.0).log()

    def reduce(self, losses: Tensor, reduction: str) -> Tensor:
        losses = torch.where(self.kept, losses, 0.0)
        if reduction == "none":
            return losses.to(self.dtype)
        total = losses.sum()
        return (total / self.kept.sum() if reduction == "mean" else total).to(self.dtype)


def _operator(method: object) -> tuple[Callable[..., Tensor], bool]:
    """The soft top-k, and whether it is its logarithm."""
    if operator_for(method) == "log_soft_topk":
        return ragged.log_soft_topk, True
    method_of("soft_topk", method)  # rows of permutations would be matrices of different sizes
    return ragged.soft_topk, False


@dataclass(frozen=True)
class TopK:
    """The loss of `top_k_cross_entropy` for rows of candidates."""

    ks: tuple[int, ...]  # those that have a weight
    method: object
    temperature: Number
    m: int | None
    label_smoothing: float
    softmax: str | None  # what stands for k = 1: that of "all", of the "m", or None for the method
    apart: bool  # it is no part of the mixture

    def losses(self, candidates: Candidates, p: Tensor) -> Tensor:
        """One for every row; p (K,) or (rows, K)."""
        p = p.to(candidates.place.device, torch.float64)
        p = p.expand(candidates.rows.count, p.shape[-1])
        few = candidates.largest(self.m)
        among = candidates if self.softmax == "all" else few
        if not self.apart:
            return self._smoothed(few, lambda own: self._mixture(own, among, p))
        losses = (1 - p[:, 0]) * self._smoothed(few, lambda own: self._mixture(own, None, p))
        if 1 not in self.ks:
            return losses
        return losses + p[:, 0] * self._smoothed(among, lambda own: -own.log_softmax())

    def _smoothed(self, candidates: Candidates, losses: Callable[[Candidates], Tensor]) -> Tensor:
        """As in torch, spread over the candidates of the row that compete."""
        found, part = losses(candidates), self.label_smoothing
        if part == 0:
            return found
        every = candidates.every()
        return (1 - part) * found + part * every.means(losses(every))

    def _mixture(self, candidates: Candidates, among: Candidates | None, p: Tensor) -> Tensor:
        """-log Σ_k p_k S_k of the right ones, with a softmax for k = 1 if there is one."""
        p = p[candidates.row]
        first = 1 in self.ks and self.softmax is not None
        rest = tuple(k for k in self.ks if not first or k > 1)
        logs, shares = [], []
        if first and among is not None:
            own = replace(among, place=candidates.place, row=candidates.row, kept=candidates.kept)
            logs, shares = [own.log_softmax()], [p[:, 0]]
        if rest:
            logs += candidates.log_masses(rest, self.method, self.temperature).unbind(-1)
            shares += [p[:, k - 1] for k in rest]
        return torch.zeros_like(p[:, 0]) if not logs else -_log_mixture(logs, shares)


def _log_mixture(logs: list[Tensor], shares: list[Tensor]) -> Tensor:
    """log Σ_k p_k S_k; what has no weight has no derivative either."""
    log, share = torch.stack(logs, -1), torch.stack(shares, -1)
    some = share > 0
    weight = torch.where(some, share, 1.0).log()
    return torch.where(some, log + weight, nothing(log)).logsumexp(-1)


def distances(rows: Rows, k: Tensor, temperature: Number, method: ThresholdMethod) -> Tensor:
    """u = (x - b)/τ of every score."""
    x, tau = rows.wide(), rows.number(temperature)
    if method.number is not None and x.shape[0]:
        return relaxations.distances(x, rows.offsets, k, tau, method.density)

    def compute(x: Tensor, part: Bucket) -> Tensor:
        return method.distance(_axis.clean(x, part.mask), part.of(k), part.of(tau))

    return rows.per_score(compute, x)
