"""Classes that are cut among ranks: what a loss asks of all of them.

No rank ever has all scores. Results are alike on all ranks, and count once in the loss.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softorder.kernels.shards import Shards
from softorder.ops._method import density_of_cut_rows
from softorder.relaxations import sharded


class Cut(NamedTuple):
    """Which of the classes this rank has: from `first` on, of so many."""

    shards: Shards
    first: int
    classes: int

    @staticmethod
    def of(scores: Tensor, axis: int, shards: Shards) -> Cut:
        """One sum over the ranks tells how many classes each of them has."""
        counts = shards.counts(scores.shape[axis], scores)
        return Cut(shards, sum(counts[: shards.rank]), sum(counts))

    def own(self, per_class: Tensor, n: int) -> Tensor:
        """This rank's part of numbers of all classes."""
        return per_class[self.first : self.first + n]


def log_masses(
    method: object, x: Tensor, target: Tensor, ks: tuple[int, ...], tau: Tensor, cut: Cut
) -> Tensor:
    """log S_k of the target of every row, (rows, len(ks))."""
    density = density_of_cut_rows("log_soft_topk", method)
    return sharded.log_entries(x, target, ks, tau, density, cut.shards, cut.first)


def every_log_mass(method: object, x: Tensor, ks: tuple[int, ...], tau: Tensor, cut: Cut) -> Tensor:
    """The same of one's own classes, (rows, n, len(ks)); what the ranks make of it adds up."""
    density = density_of_cut_rows("log_soft_topk", method)
    counts = [torch.full((), float(k), dtype=torch.float64, device=x.device) for k in ks]
    found = [sharded.soft_topk(x, k, tau, density, cut.shards, log=True) for k in counts]
    return torch.stack(found, -1).double()


def cross_entropy(
    x: Tensor, target: Tensor, weight: Tensor | None, label_smoothing: float, cut: Cut
) -> Tensor:
    """torch's cross_entropy of every row, without a reduction."""
    shards, n = cut.shards, x.shape[-1]
    total = log_total(x, cut)
    losses = total - entry(x, target, cut)
    if weight is not None:
        losses = losses * weight[target]
    if label_smoothing == 0:
        return losses
    # every rank goes on from the same total: what each makes of it is to be added up
    gaps = shards.shared(total).unsqueeze(-1) - x
    if weight is not None:
        gaps = gaps * cut.own(weight, n)
    smooth = shards.common(gaps.sum(-1)) / cut.classes
    return (1 - label_smoothing) * losses + label_smoothing * smooth


def log_total(x: Tensor, cut: Cut) -> Tensor:
    """logsumexp of the scores of all ranks."""
    lowest = x.new_full((len(x), 1), -math.inf)
    top = cut.shards.most(torch.cat([x.detach(), lowest], -1).amax(-1))
    top = torch.where(top.isfinite(), top, 0.0)
    return cut.shards.common(torch.exp(x - top.unsqueeze(-1)).sum(-1)).log() + top


def entry(x: Tensor, target: Tensor, cut: Cut) -> Tensor:
    """The score of the target of every row, whichever rank has it."""
    return sharded.entry(x, target, cut.shards, cut.first)


def largest(x: Tensor, target: Tensor, m: int, cut: Cut) -> tuple[Tensor, Tensor, Tensor]:
    """The m largest scores of all ranks, the target among them; its place; and their classes."""
    size = min(m, x.shape[-1])
    best = x.detach().topk(size, sorted=True).indices
    names = best + cut.first
    values = x.gather(-1, best)
    if size < m:
        values = torch.nn.functional.pad(values, (0, m - size), value=-math.inf)
        names = torch.nn.functional.pad(names, (0, m - size), value=-1)
    values, names = _Gather.apply(values, cut.shards), cut.shards.gather(names)
    chosen = values.detach().topk(m, sorted=True).indices
    values, names = values.gather(-1, chosen), names.gather(-1, chosen)
    own = target.unsqueeze(-1)
    absent = (names != own).all(-1, keepdim=True)
    last = torch.arange(m, device=x.device) == m - 1
    score = entry(x, target, cut).unsqueeze(-1)
    values = torch.where(absent & last, score, values)
    names = torch.where(absent & last, own, names)
    return values, (names == own).long().argmax(-1), names


class _Gather(torch.autograd.Function):
    """What all ranks have; the gradient, alike on all of them, is that of one's own part."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, shards: Shards) -> Tensor:
        ctx.statics = shards.rank * values.shape[-1], values.shape[-1]
        return shards.gather(values)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        first, size = ctx.statics
        return upstream[..., first : first + size], None
