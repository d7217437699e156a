"""Losses of a list by the law of Plackett and Luce: the likelihood of an order, or of the first."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from softorder import _check
from softorder.kernels._moved import moved, narrow
from softorder.kernels._recomputed import recomputed
from softorder.kernels.sort.rows import sort_rows, sums_before
from softorder.losses._lists import ScoreLoss, mean_of, shares
from softorder.losses._log_sums import log_add, log_sums_behind, nothing

_TIES = ("efron", "breslow")
_TARGETS = ("softmax", "proportional")


class ListMLELoss(ScoreLoss):
    """ListMLE: -log of the probability that the scores give to the order of the relevances.

    By the law of Plackett and Luce places are filled one after the other, each time by one of those
    that are left, with probabilities in proportion to e^(x/τ). In the order of the relevances, the
    largest first, and with x counted in units of τ,

        loss = Σ_p log D_p - x_p      D_p = Σ_{q>=p} e^x_q

    Elements of equal relevance may come in any order. This is Cox's partial likelihood with ties,
    and his readers' remedies serve: with T = Σ e^x over the d elements of a grade, and R over the
    grades below, the l-th of them (l = 0, 1, ...) has

        D = R + (1 - l/d) T      (Efron, exact if their scores are equal)      D = R + T   (Breslow)

    The lowest grade has nothing below it and costs nothing; without ties that is so anyway. Time
    O(n log n), memory O(n), convex in the scores. Lists of one grade only do not count.

    `weights` w of elements are those of cases in Cox's model: R and T are sums of w e^x, and

        loss = Σ_p w̄_p log D_p - w_p x_p      w̄ the mean weight of the grade

    So for "breslow" an element of weight 2 is two elements; what has weight 0 takes no part.

    Args:
        k: how many places are judged, or None for all. A grade that has places on both sides of k
            takes part as if its order were drawn.
        ties: "efron" or "breslow".
        **options: `temperature`, `dim`, `reduction` and `learnable_temperature`, as in
            `PairwiseLoss`.

    Papers: ListMLE (Xia et al. 2008), for k places Top-k ListMLE (Xia et al. 2009); ties: Breslow
    1974, Efron 1977.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([3.0, 1.0, 2.0])
    >>> round(so.losses.ListMLELoss()(scores, torch.tensor([3, 2, 1])).item(), 4)
    1.7209
    >>> round(so.losses.ListMLELoss()(scores, torch.tensor([1, 0, 0])).item(), 4)  # softmax's
    0.4076
    """

    numbers = ("k", *ScoreLoss.numbers)

    def __init__(self, k: int | None = None, *, ties: str = "efron", **options: Any) -> None:
        super().__init__(**options)
        if k is not None:
            _check.count("k", k, least=1)
        _check.choice("ties", ties, _TIES)
        self.k = k
        self.ties = ties

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        if weights is not None:
            present = present & (weights > 0)
        grades = torch.where(present, wanted.detach(), -math.inf)
        rows = sort_rows(grades)
        order = rows.mirror(rows.order)
        first, behind = (place.gather(-1, order) for place in rows.ranges(descending=True))
        size = present.sum(-1, keepdim=True)
        w = None if weights is None else weights.gather(-1, order)
        kept = narrow(order)
        s = moved(self._tempered(x, present), order, kept, back=False)
        places = (narrow(place) for place in (first, behind))
        return recomputed(self._found, s, *places, size, w), (behind < size).any(-1)

    def _found(
        self, s: Tensor, first: Tensor, behind: Tensor, size: Tensor, w: Tensor | None
    ) -> Tensor:
        """The loss of x/τ in the order of the relevances, with the ranges of their grades."""
        first, behind = first.long(), behind.long()
        above = behind < size  # not of the lowest grade
        logs = self._log_sums(s if w is None else s + w.log(), first, behind, size)
        place = torch.arange(s.shape[-1], device=s.device)
        if self.k is None:
            judged, share = above, above.to(s.dtype)
        else:
            judged = above & (place < self.k)
            share = ((self.k - first).to(s.dtype) / (behind - first)).clamp(0, 1) * above
        if w is not None:
            before, upto = sums_before(w, first, behind)
            logs, s = logs * (upto - before) / (behind - first), w * s
        return (torch.where(judged, logs, 0.0) - share * s).sum(-1)

    def _log_sums(self, s: Tensor, first: Tensor, behind: Tensor, size: Tensor) -> Tensor:
        """log D of every place. R + (1 - l/d) T = (1 - l/d)(R + T) + (l/d) R loses no digits."""
        place = torch.arange(s.shape[-1], device=s.device)
        s = torch.where(place < size, s, nothing(s))
        left = pad(log_sums_behind(s), (0, 1), value=nothing(s))
        whole = left.gather(-1, first)
        if self.ties == "breslow":
            return whole
        part = (place - first).to(s.dtype) / (behind - first)
        first_of_all = part == 0
        part = torch.where(first_of_all, 0.5, part)
        mixed = log_add(whole + torch.log1p(-part), left.gather(-1, behind) + part.log())
        return torch.where(first_of_all, whole, mixed)

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}, ties={self.ties!r}"


class ListNetLoss(ScoreLoss):
    """ListNet: the cross-entropy of who comes first, by the relevances and by the scores.

        loss = -Σ_i y_i log softmax(x/τ)_i

    where y is the softmax of the relevances, as in the paper, or with target="proportional" the
    relevances themselves, divided by their sum: the softmax loss of retrieval and recommendation,
    for several relevant elements. O(n). Lists in which nothing takes part do not count, and for
    "proportional" those without a positive relevance. With `weights` w of elements the softmax is
    e^x_i/Σ_j w_j e^x_j, and y_i is w_i e^relevance_i or w_i relevance_i, divided by its sum: as if
    element i were there w_i times. A negative that was drawn with probability q stands for 1/q.

    Args:
        target: "softmax" or "proportional".
        **options: `temperature`, `dim`, `reduction` and `learnable_temperature`, as in
            `PairwiseLoss`.

    Paper: ListNet (Cao et al. 2007).

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1, 0, 0])
    >>> round(so.losses.ListNetLoss()(scores, relevance).item(), 4)
    1.0434
    >>> round(so.losses.ListNetLoss(target="proportional")(scores, relevance).item(), 4)
    0.4076
    """

    def __init__(self, *, target: str = "softmax", **options: Any) -> None:
        super().__init__(**options)
        _check.choice("target", target, _TARGETS)
        self.target = target

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        share = shares(present, weights, x)
        present = share > 0
        some = present.any(-1)
        there = present | ~some.unsqueeze(-1)  # a softmax of nothing would be NaN
        often = torch.where(present, share, 1.0).log()
        s = torch.where(there, self._tempered(x, present) + often, -math.inf)
        logs = torch.where(present, torch.log_softmax(s, -1) - often, 0.0)
        if self.target == "softmax":
            y = torch.softmax(torch.where(there, wanted + often, -math.inf), -1)
            return -(y * logs).sum(-1), some
        _check.targets.no_negatives("relevance", wanted)
        found, counts = mean_of(logs, share * wanted)
        return -found, counts

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, target={self.target!r}"
