"""Ranking metrics made smooth by soft ranks and a soft top-k, as losses: 1 - the metric."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder import _check
from softorder.losses._lists import CutLoss
from softorder.ops.calibration import of_topk


class NDCGLoss(CutLoss):
    """1 - NDCG@k, the normalised discounted cumulative gain, with soft ranks r:

        DCG = Σ_i gain_i p_i/log2(1 + r_i)      NDCG = DCG/(its value in the best order)

    where p = `so.soft_topk(scores, k)` says who is among the first k (all are without a k). As
    τ → 0 this is 1 - sklearn's ndcg_score, for distinct scores. Lists without a positive gain do
    not count.

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
        _check.choice("gain", gain, ("linear", "exponential"))
        self.gain = gain

    def _losses(self, x: Tensor, wanted: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        _check.targets.no_negatives("relevance", wanted)
        gain = wanted if self.gain == "linear" else torch.expm1(wanted * math.log(2))
        found = (gain * self._chosen(x) / torch.log2(1 + self._ranks(x))).sum(-1)
        places = torch.arange(1, 1 + x.shape[-1], device=x.device, dtype=x.dtype)
        ideal = gain.sort(-1, descending=True).values / torch.log2(1 + places)
        best = ideal[..., : self.k].sum(-1)
        counts = best > 0
        return 1 - found / torch.where(counts, best, 1.0), counts

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, gain={self.gain!r}"


class MRRLoss(CutLoss):
    """1 - MRR@k: minus the reciprocal of the soft rank of the best relevant element.

        MRR = max over relevant i of p_i/r_i

    with p = `so.soft_topk(scores, k)`, or 1 without a k. Relevant is what has a relevance > 0;
    lists without do not count. As τ → 0: 1 - the mean reciprocal rank, for distinct scores.

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

    def _losses(self, x: Tensor, wanted: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        relevant = wanted > 0
        reciprocal = self._chosen(x) / self._ranks(x)
        return 1 - torch.where(relevant, reciprocal, 0.0).amax(-1), relevant.any(-1)


class PrecisionAtK(CutLoss):
    """1 - precision@k: how much of a soft top-k is not relevant.

        precision = Σ_i [relevance_i > 0] p_i/k      p = so.soft_topk(scores, k)

    Lists in which nothing takes part do not count. As τ → 0: 1 - the share of relevant elements
    among the k with the largest scores.

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

    def _losses(self, x: Tensor, wanted: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        assert self.k is not None
        return 1 - self._hits(x, wanted) / self.k, present.any(-1)

    def _find_temperature(self, x: Tensor) -> None:
        assert self.k is not None
        of_topk(self.temperature, x, min(self.k, x.shape[-1]), method=self.method)

    def _hits(self, x: Tensor, wanted: Tensor) -> Tensor:
        return torch.where(wanted > 0, self._chosen(x), 0.0).sum(-1)


class RecallAtK(PrecisionAtK):
    """1 - recall@k: how much of what is relevant is not in a soft top-k.

        recall = Σ_i [relevance_i > 0] p_i/Σ_i [relevance_i > 0]      p = so.soft_topk(scores, k)

    Lists without anything relevant do not count. The arguments are those of `PrecisionAtK`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> round(so.losses.RecallAtK(2, temperature=1e-3)(scores, relevance).item(), 4)
    0.5
    """

    def _losses(self, x: Tensor, wanted: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        relevant = (wanted > 0).sum(-1)
        return 1 - self._hits(x, wanted) / relevant.clamp(min=1), relevant > 0
