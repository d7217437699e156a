"""Losses of a whole order: Spearman's correlation, and the cross-entropy of a permutation."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _axis, hard
from softorder.kernels._recomputed import recomputed
from softorder.kernels.sort.rows import sort_rows
from softorder.losses._lists import RankingLoss, mean_of, shares
from softorder.ops._method import computation


class SpearmanLoss(RankingLoss):
    """1 - Spearman's ρ: the correlation of the soft ranks with the ranks of the relevances.

    Equal relevances share the average of their places. Lists whose relevances are all the same do
    not count. Where all soft ranks are the same, ρ is 0, and its gradient that of the covariance.
    As τ → 0: 1 - scipy's spearmanr, ties included. With `weights` of elements the ranks stay, and
    means, variances and covariance are those of the weights.

    Args:
        method: any that serves soft_rank.
        temperature: as in `so.soft_rank`.
        dim: the axis of the lists.
        reduction: "mean" over the lists that count, "sum", or "none".
        learnable_temperature: as in `so.nn.SoftRank`.

    >>> import torch, softorder as so
    >>> scores, values = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([30.0, 20.0, 10.0])
    >>> round(so.losses.SpearmanLoss(temperature=1e-3)(scores, values).item(), 4)
    0.5
    """

    operators = ("soft_rank",)

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        share = shares(present, weights, x)
        truth = _centred(hard.rank(wanted, mask=present), share)
        wide = (share * truth * truth).sum(-1)
        counts = wide > _rounding(x)
        wide = torch.where(counts, wide, 1.0)
        # x says again who is present: the graph of the ranks has it anyway
        ranks = self._ranks(x, descending=False)
        return 1 - recomputed(_correlation, ranks, truth, wide, x.detach(), weights), counts


def _correlation(
    ranks: Tensor, truth: Tensor, wide: Tensor, x: Tensor, weights: Tensor | None
) -> Tensor:
    """Of ranks and centred ones whose squares sum to `wide`."""
    share = shares(x > -math.inf, weights, x)
    ranks = _centred(ranks, share)
    spread = (share * ranks * ranks).sum(-1)
    spread = torch.where(spread > _rounding(x), spread, 1.0)
    return (share * ranks * truth).sum(-1) / torch.sqrt(spread * wide)


def _rounding(x: Tensor) -> float:
    """What squares of ranks that are all the same may sum to."""
    return float((x.shape[-1] * torch.finfo(x.dtype).eps) ** 2)


def _centred(ranks: Tensor, share: Tensor) -> Tensor:
    """Minus their mean; 0 for what does not count."""
    mean, _ = mean_of(ranks, share)
    return torch.where(share > 0, ranks - mean.unsqueeze(-1), 0.0)


class ListwiseCE(RankingLoss):
    """The cross-entropy of the soft permutation and the order of the relevances.

    -log of the mass that an element has in its right places, the mean over the list:

        -log Σ_{j=first_i}^{last_i} P[j, i]      P = so.soft_permutation(scores, descending=True)

    where elements of equal relevance share their places first..last, in any order. Without ties it
    is `permutation_cross_entropy`; with them it needs two thresholds per element just the same, so
    nothing of size n×n is formed. Lists in which nothing takes part do not count. With `weights` of
    elements the mean is theirs; places stay.

    The arguments are those of `SpearmanLoss`; the method has to serve permutation_cross_entropy.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1, 0, 1])
    >>> round(so.losses.ListwiseCE(temperature=0.5)(scores, relevance).item(), 3)
    0.144
    """

    operators = ("permutation_cross_entropy",)

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        order = torch.where(present, wanted.detach(), -math.inf)
        first, behind = sort_rows(order).ranges(descending=True)
        compute = computation(self.operators[0], self.method)
        each = compute(x, first, _axis.per_row(self.temperature, x), True, behind - 1)
        return mean_of(each.to(x.dtype), shares(present, weights, x))
