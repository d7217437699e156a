"""Ranking metrics made smooth by soft ranks and a soft top-k, as losses: 1 - the metric."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels._recomputed import recomputed
from softorder.losses._gains import GAINS, best_sum, gains, missing
from softorder.losses._lists import CutLoss, mean_of, shares
from softorder.ops._forms import is_jagged
from softorder.ops.calibration import of_topk


class NDCGLoss(CutLoss):
    """1 - NDCG@k, the normalised discounted cumulative gain, with soft ranks r:

        DCG = Σ_i gain_i p_i/log2(1 + r_i)      NDCG = DCG/(its value in the best order)

    where p = `so.soft_topk(scores, k)` says who is among the first k (all are without a k). As
    τ → 0 this is 1 - sklearn's ndcg_score, for distinct scores. Lists without a positive gain do
    not count. `weights` of elements multiply their gains, here and in the best order: how much it
    is worth to find one, as an inverse propensity says; with 0 it still takes up its place.

    Args:
        k: how many places are judged, or None for all.
        gain: "linear" for the relevance itself, "exponential" for 2^relevance - 1.
        **options: `method`, which has to serve soft_rank, and soft_topk if there is a k;
            `temperature`, `dim`, `reduction` and `learnable_temperature` as in `SpearmanLoss`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([3, 2, 0])
    >>> round(so.losses.NDCGLoss(temperature=1e-3)(scores, relevance).item(), 4)
    0.0614
    """

    operators = ("soft_rank",)

    def __init__(self, k: int | None = None, *, gain: str = "linear", **options: Any) -> None:
        super().__init__(k, **options)
        _check.choice("gain", gain, GAINS)
        self.gain = gain

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        gain = gains(wanted, self.gain, weights)
        found = recomputed(_discounted, self._ranks(x), gain, self._chosen(x))
        return missing(found, best_sum(gain, self.k))

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, gain={self.gain!r}"


def _discounted(ranks: Tensor, gain: Tensor, chosen: Tensor | None) -> Tensor:
    return ((gain if chosen is None else gain * chosen) / torch.log2(1 + ranks)).sum(-1)


class ApproxNDCGLoss(NDCGLoss):
    """ApproxNDCG: `NDCGLoss` with the choices of its paper, logistic ranks and exponential gains.

        rank_i = 1 + Σ_{j≠i} σ((x_j - x_i)/τ)      loss = 1 - Σ_i (2^y_i - 1)/log2(1 + rank_i)/N

    with N the value of the best order; the paper's α is 1/τ. The ranks are
    `so.soft_rank(scores, method="logistic", descending=True)`: compiled, O(n log n) time and O(n)
    memory for what the formula does with n² sigmoids.

    Args:
        k: how many places are judged, or None for all; then who is among them is decided by
            `so.soft_topk`.
        **options: `temperature`, `gain`, `dim`, `reduction`, `learnable_temperature`, and `method`
            for other densities, as in `NDCGLoss`; so are weights of elements.

    Paper: A general approximation framework for direct optimization of IR measures (Qin, Liu & Li
    2010).

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([3, 2, 0])
    >>> round(so.losses.ApproxNDCGLoss(temperature=0.1)(scores, relevance).item(), 4)
    0.0442
    """

    def __init__(
        self,
        k: int | None = None,
        *,
        method: str | object = "logistic",
        gain: str = "exponential",
        **options: Any,
    ) -> None:
        super().__init__(k, gain=gain, method=method, **options)


class MRRLoss(CutLoss):
    """1 - MRR@k: minus the reciprocal of the soft rank of the best relevant element.

        MRR = max over relevant i of p_i/r_i

    with p = `so.soft_topk(scores, k)`, or 1 without a k. Relevant is what has a relevance > 0;
    lists without do not count. As τ → 0: 1 - the mean reciprocal rank, for distinct scores. With
    `weights` of elements it is max w_i p_i/r_i, divided by the largest w of a relevant one.

    Args:
        k: how many places are judged, or None for all.
        **options: `method`, which has to serve soft_rank, and soft_topk if there is a k;
            `temperature`, `dim`, `reduction` and `learnable_temperature` as in `SpearmanLoss`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> round(so.losses.MRRLoss(temperature=1e-3)(scores, relevance).item(), 4)
    0.5
    """

    operators = ("soft_rank",)

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        share = shares(wanted > 0, weights, x)
        found = recomputed(_best_reciprocal, self._ranks(x), share, self._chosen(x))
        return missing(found, share.amax(-1))


def _best_reciprocal(ranks: Tensor, share: Tensor, chosen: Tensor | None) -> Tensor:
    reciprocal = (1.0 if chosen is None else chosen) / ranks
    return (share * torch.where(share > 0, reciprocal, 0.0)).amax(-1)


class PrecisionAtK(CutLoss):
    """1 - precision@k: how much of a soft top-k is not relevant.

        precision = Σ_i [relevance_i > 0] p_i/k      p = so.soft_topk(scores, k)

    Lists in which nothing takes part do not count. As τ → 0: 1 - the share of relevant elements
    among the k with the largest scores. With `weights` w of elements it is the share of what is
    relevant in the weight of the soft top-k, Σ_i [relevance_i > 0] w_i p_i/Σ_i w_i p_i, in which an
    empty place weighs 1.

    Args:
        k: how many are chosen. A list shorter than k has empty places, which count as misses.
        **options: `method`, which has to serve soft_topk; `temperature`, `dim`, `reduction` and
            `learnable_temperature` as in `SpearmanLoss`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> round(so.losses.PrecisionAtK(2, temperature=1e-3)(scores, relevance).item(), 4)
    0.5
    """

    operators = ("soft_topk",)

    def __init__(self, k: int, **options: Any) -> None:
        _check.count("k", k, least=1)
        super().__init__(k, **options)

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        p = self._chosen(x)
        assert self.k is not None
        assert p is not None
        found = (shares(wanted > 0, weights, x) * p).sum(-1)
        if weights is None:
            return 1 - found / self.k, present.any(-1)
        p = torch.where(present, p, 0.0)
        share, counts = missing(found, (weights * p).sum(-1) + self.k - p.sum(-1))
        return share, counts & present.any(-1)

    def _find_temperature(self, x: Tensor) -> None:
        assert self.k is not None
        k = self.k if is_jagged(x) else min(self.k, x.shape[-1])
        of_topk(self.temperature, x, k, method=self.method)


class RecallAtK(PrecisionAtK):
    """1 - recall@k: how much of what is relevant is not in a soft top-k.

        recall = Σ_i [relevance_i > 0] p_i/Σ_i [relevance_i > 0]      p = so.soft_topk(scores, k)

    Lists without anything relevant do not count. With `weights` of elements both sums are those of
    the weights of what is relevant. The arguments are those of `PrecisionAtK`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> round(so.losses.RecallAtK(2, temperature=1e-3)(scores, relevance).item(), 4)
    0.5
    """

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        p = self._chosen(x)
        assert p is not None
        found, counts = mean_of(p, shares(wanted > 0, weights, x))
        return 1 - found, counts
