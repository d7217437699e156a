"""Losses of pairs: RankNet, BPR, hinge, and LambdaLoss, which weighs them by what NDCG gains."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from softorder import _check
from softorder.kernels.pairs import Weighing
from softorder.losses._gains import GAINS, best_sum, discounts, gains
from softorder.losses._lists import ScoreLoss
from softorder.losses._pair_sums import Asked, Found, found_by_kernel
from softorder.losses._pairs import Pairs

_KINDS = ("logistic", "hinge")
_LAMBDAS = {
    "ndcg1": Weighing.FIRST,
    "ndcg2": Weighing.BOUND,
    "ndcg2++": Weighing.BOTH,
    "lambdarank": Weighing.EXCHANGE,
}


class PairwiseLoss(ScoreLoss):
    """What the pairs of a list say: the mean over those with relevance_i > relevance_j of

        log(1 + e^-u)      "logistic": RankNet, and for relevances of 0 and 1 BPR
        max(0, 1 - u)      "hinge"

    with u = (x_i - x_j)/τ; so τ is the margin of a hinge. Every pair counts alike, whatever the
    difference of the relevances; with `weights` of elements, a pair counts w_i w_j, as if element i
    were there w_i times. Lists whose relevances are all the same do not count. Scores are finite,
    or -inf where they take no part: none is certain.

    O(m n) time for m elements above the lowest relevance, memory O(n): by a compiled kernel, or in
    plain torch some millions of pairs at a time, and again on the way back.

    Args:
        kind: "logistic" or "hinge".
        **options: temperature, dim, reduction and learnable_temperature of `so.losses.ListNetLoss`.

    Papers: RankNet (Burges et al. 2005); BPR (Rendle et al. 2009).

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([1, 1, 0])
    >>> round(so.losses.PairwiseLoss()(scores, relevance).item(), 4)
    0.8133
    >>> round(so.losses.PairwiseLoss("hinge")(scores, relevance).item(), 4)
    1.0
    """

    def __init__(self, kind: str = "logistic", **options: Any) -> None:
        super().__init__(**options)
        _check.choice("kind", kind, _KINDS)
        self.kind = kind

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        tempered = self._tempered(x, present)

        def asked() -> Asked:
            grades = torch.where(present, wanted.detach(), -math.inf)
            return Asked(grades, weights, hinge=self.kind == "hinge")

        def plain(tempered: Tensor) -> Found:
            pairs = Pairs.of(wanted, present, weights)
            return Found(pairs.sum(tempered, self._term), pairs.counts, pairs.counts)

        found = found_by_kernel(tempered, asked, plain) or plain(tempered)
        counts = found.weight > 0
        return found.total / torch.where(counts, found.weight, 1), counts

    def _term(self, u: Tensor, i: Tensor, pair: Tensor) -> Tensor:
        return softplus(-u) if self.kind == "logistic" else torch.relu(1 - u)

    def extra_repr(self) -> str:
        return f"{self.kind!r}, {super().extra_repr()}"


class LambdaLoss(ScoreLoss):
    """LambdaLoss: pairs, weighed by what they matter to NDCG in the order that the scores have now.

        loss = Σ w_ij log2(1 + e^-(x_i - x_j)/τ)      over pairs with relevance_i > relevance_j

    With G = gain/N, N the discounted gains of the best order, D_p = log2(1 + p), and p_i the place
    of element i by its score, the weights are constants:

        "ndcg1"       G_i/D(p_i)                                       NDCG-Loss1
        "ndcg2"       |G_i - G_j| (1/D(δ) - 1/D(δ + 1)), δ = |p_i - p_j|   NDCG-Loss2
        "lambdarank"  |G_i - G_j| |1/D(p_i) - 1/D(p_j)|                what an exchange changes
        "ndcg2++"     "lambdarank" + μ "ndcg2"                         NDCG-Loss2++

    The first two are bounds of 1 - NDCG, up to constants. Equal scores have their places in the
    order of the list, so that they can be told apart. Lists without pairs do not count. `weights`
    of elements (those of the call) multiply their gains, as in `NDCGLoss`, and pairs are then those
    with gain_i > gain_j.

    O(m n) time for m elements above the lowest relevance, memory O(n), as in `PairwiseLoss`.

    Args:
        weights: "ndcg1", "ndcg2", "ndcg2++" or "lambdarank".
        k: how many places are judged, or None for all: then N is that of NDCG@k, 1/D is 0 beyond k
            but for the D of δ, and a pair needs a place among the first k.
        gain: "exponential" for 2^relevance - 1, as in the paper, or "linear".
        mu: μ of "ndcg2++".
        **options: `temperature`, `dim`, `reduction` and `learnable_temperature`, as in
            `PairwiseLoss`.

    Papers: The LambdaLoss framework (Wang et al. 2018); LambdaRank (Burges et al. 2006).

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([3, 2, 0])
    >>> for weights in ("ndcg1", "ndcg2", "ndcg2++", "lambdarank"):
    ...     print(weights, round(so.losses.LambdaLoss(weights)(scores, relevance).item(), 4))
    ndcg1 0.8195
    ndcg2 0.378
    ndcg2++ 4.0359
    lambdarank 0.2562
    """

    numbers = ("k", "mu", *ScoreLoss.numbers)

    def __init__(
        self,
        weights: str = "ndcg2++",
        k: int | None = None,
        *,
        gain: str = "exponential",
        mu: float = 10.0,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        _check.choice("weights", weights, _LAMBDAS)
        if k is not None:
            _check.count("k", k, least=1)
        _check.choice("gain", gain, GAINS)
        _check.at_least("mu", mu, 0)
        self.weights = weights
        self.k = k
        self.gain = gain
        self.mu = mu

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        gain = gains(wanted.detach(), self.gain, weights)
        grades = torch.where(present, wanted.detach() if weights is None else gain, -math.inf)
        most = gain.amax(-1, keepdim=True)
        gain = gain / torch.where(most > 0, most, 1.0)  # so that no sum of large ones overflows

        def plain(tempered: Tensor) -> Found:
            pairs, place = Pairs.of(grades, present), _places(x)

            def term(u: Tensor, i: Tensor, pair: Tensor) -> Tensor:
                return self._weights(gain, place, i) * softplus(-u)

            return Found(pairs.sum(tempered, term), best_sum(gain, self.k), pairs.counts)

        tempered = self._tempered(x, present)
        asked = partial(self._asked, grades, gain, x.detach())
        found = found_by_kernel(tempered, asked, plain) or plain(tempered)
        best = torch.where(found.weight > 0, found.weight, 1.0)
        return found.total / (math.log(2) * best), found.counts > 0

    def _asked(self, grades: Tensor, gain: Tensor, x: Tensor) -> Asked:
        """The same weights as `_weights` has, by tables of places and of their distances."""
        n = x.shape[-1]
        every = discounts(n + 1, x.double())
        k = n if self.k is None else min(self.k, n)
        discount = every[:n].clone()
        discount[k:] = 0.0
        bound = every.roll(1)[:n] - every[:n]
        bound *= self.mu if self.weights == "ndcg2++" else 1.0
        tables = discount.to(x.dtype), bound.to(x.dtype)
        return Asked(grades, gain, _LAMBDAS[self.weights], x, *tables, first=k)

    def _weights(self, gain: Tensor, place: Tensor, i: Tensor) -> Tensor:
        """w_ij of these i and all j."""
        own, at = gain.gather(-1, i).unsqueeze(-1), place.gather(-1, i).unsqueeze(-1)
        there = place.unsqueeze(-2)
        if self.weights == "ndcg1":
            weights = (own * self._discount(at)).expand(*own.shape[:-1], gain.shape[-1])
        else:
            weights = (own - gain.unsqueeze(-2)).abs() * self._exchange(at, there)
        if self.k is None:
            return weights
        return torch.where((at <= self.k) | (there <= self.k), weights, 0.0)

    def _exchange(self, at: Tensor, there: Tensor) -> Tensor:
        """What the discounts have to do with the exchange of two places."""
        real = (self._discount(at) - self._discount(there)).abs()
        if self.weights == "lambdarank":
            return real
        apart = (at - there).abs().clamp(min=1)  # i = j is no pair
        bound = 1 / torch.log2(1 + apart) - 1 / torch.log2(2 + apart)
        return bound if self.weights == "ndcg2" else real + self.mu * bound

    def _discount(self, place: Tensor) -> Tensor:
        found = 1 / torch.log2(1 + place)
        return found if self.k is None else torch.where(place <= self.k, found, 0.0)

    def extra_repr(self) -> str:
        shown = f"{self.weights!r}, k={self.k}, {super().extra_repr()}, gain={self.gain!r}"
        return f"{shown}, mu={self.mu}" if self.weights == "ndcg2++" else shown


def _places(x: Tensor) -> Tensor:
    """The place of every score, the largest has 1; what takes no part comes last."""
    order = x.detach().sort(dim=-1, descending=True, stable=True).indices
    place = torch.arange(1, 1 + x.shape[-1], device=x.device, dtype=x.dtype)
    return torch.empty_like(x).scatter(-1, order, place.expand_as(x))
