"""Losses of rows of different lengths, one behind another, without padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check, ragged
from softorder.kernels.ragged import Bucket
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
    """Rows of candidates, one of which is right; rows that are ignored have any."""

    rows: Rows
    place: Tensor  # of the right one among all values
    kept: Tensor
    dtype: torch.dtype

    @staticmethod
    def of(scores: Any, target: Tensor, ignore_index: int) -> Candidates:
        rows = Rows.checked(*_jagged.unpack(scores, 1), None)
        _check.ragged.candidates(target, rows.offsets, ignore_index)
        kept = target != ignore_index
        last = max(rows.values.shape[0] - 1, 0)
        place = (rows.offsets[:-1] + torch.where(kept, target.long(), 0)).clamp(max=last)
        return Candidates(rows, place, kept, dtype_of_loss(rows.values))

    def log_masses(self, ks: tuple[int, ...], method: object, temperature: Number) -> Tensor:
        """log S_k of the right ones, (rows, len(ks)); log 1 where a row has no more than k."""
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
        total = segments.add_up((x - segments.spread(top)).exp())
        return x[self.place] - top - torch.where(self.kept, total, 1.0).log()

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


def top_k_losses(
    candidates: Candidates,
    p: Tensor,
    ks: tuple[int, ...],
    *,
    method: object,
    temperature: Number,
    softmax: bool,
    apart: bool,
) -> Tensor:
    """The losses of `top_k_cross_entropy`, one for every row; p (K,) or (rows, K)."""
    p = p.to(candidates.place.device, torch.float64).expand(len(candidates.place), p.shape[-1])
    first = candidates.log_softmax() if softmax and 1 in ks else None
    rest = tuple(k for k in ks if first is None or k > 1)
    logs, shares = [], []
    if rest:
        logs = [*candidates.log_masses(rest, method, temperature).unbind(-1)]
        shares = [p[:, k - 1] for k in rest]
    if first is not None and not apart:
        logs, shares = [first, *logs], [p[:, 0], *shares]
    losses = torch.zeros_like(p[:, 0]) if not logs else -_log_mixture(logs, shares)
    if not apart:
        return losses
    losses = (1 - p[:, 0]) * losses
    return losses if first is None else losses - p[:, 0] * first


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
