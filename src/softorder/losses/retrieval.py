"""Losses of retrieval: average precision and recall by soft ranks, and large batches in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from softorder import _axis, _check
from softorder.kernels._recomputed import recomputed
from softorder.losses._lists import RankingLoss, mean_of, shares

_SCORES = 2**22  # that are held at a time


class SmoothAPLoss(RankingLoss):
    """Smooth-AP: 1 - the average precision, with soft ranks.

        AP = mean over relevant i of rank_i among the relevant/rank_i among all

    Both are soft ranks, 1 + Σ_{j≠i} F((x_j - x_i)/τ); with "logistic", the default, they are the
    paper's. It has n² sigmoids for each query, this O(n log n) time and O(n) memory:
    `so.soft_rank` sums without a table. Relevant is what has a relevance > 0; lists without do not
    count. As τ → 0: 1 - sklearn's average_precision_score, for distinct scores.

    With `weights` w of elements the mean is theirs, and ranks are 1/2 + Σ_j w_j F((x_j - x_i)/τ),
    for which the method has to be a density: as if element i were there w_i times. An irrelevant
    one that was drawn with probability q stands for 1/q.

    Args:
        method: any that serves soft_rank.
        temperature: as in `so.soft_rank`. The default is the paper's, for cosines as scores.
        **options: `dim`, `reduction` and `learnable_temperature`, as in `SpearmanLoss`.

    Paper: Smooth-AP (Brown et al. 2020).

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([0.9, 0.1, 0.5]), torch.tensor([0, 1, 1])
    >>> round(so.losses.SmoothAPLoss()(scores, relevance).item(), 4)
    0.4167
    """

    operators = ("soft_rank",)

    def __init__(
        self,
        *,
        method: str | object = "logistic",
        temperature: float | Tensor = 0.01,
        **options: Any,
    ) -> None:
        super().__init__(method=method, temperature=temperature, **options)

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        share = shares((wanted > 0) & present, weights, x)
        tau = _axis.per_row(self.temperature, x)
        return 1 - recomputed(self._found, x, tau, share, weights), share.sum(-1) > 0

    def _found(self, x: Tensor, tau: Tensor, share: Tensor, weights: Tensor | None) -> Tensor:
        """The average precision, from two soft ranks that would each keep a sorted row."""
        relevant = share > 0
        among = self._ranks_at(tau, torch.where(relevant, x, -torch.inf), weights=weights)
        precision = torch.where(relevant, among, 0.0) / self._ranks_at(tau, x, weights=weights)
        return mean_of(precision, share)[0]


class SmoothRecallLoss(RankingLoss):
    """1 - recall@k with soft ranks and a soft edge, the mean over several k.

        recall@k = (1/R) Σ over the R relevant i of σ((k - rank_i)/θ)

    with the soft ranks of `SmoothAPLoss`, of which the paper's are the logistic ones, and the
    temperature θ of the edge, in places. Unlike `RecallAtK`, whose soft top-k lets in k elements
    exactly, it is pulled at from all places near k: the larger θ, the further. At θ → 0 the element
    at place k itself counts half. Lists without anything relevant do not count. `weights` of
    elements say how many times each is there, as in `SmoothAPLoss`; R is their sum.

    Args:
        k: one number, or several.
        edge: θ > 0.
        method: any that serves soft_rank.
        temperature: as in `so.soft_rank`. The default is the paper's, for cosines as scores.
        **options: `dim`, `reduction` and `learnable_temperature`, as in `SpearmanLoss`.

    Paper: Recall@k surrogate loss with large batches (Patel, Tolias & Matas 2022).

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([0.9, 0.1, 0.5]), torch.tensor([0, 1, 1])
    >>> round(so.losses.SmoothRecallLoss(k=(1, 2))(scores, relevance).item(), 4)
    0.7107
    """

    operators = ("soft_rank",)
    numbers = ("k", "edge", *RankingLoss.numbers)

    def __init__(
        self,
        k: int | Sequence[int] = (1, 2, 4, 8, 16),
        *,
        edge: float = 1.0,
        method: str | object = "logistic",
        temperature: float | Tensor = 0.01,
        **options: Any,
    ) -> None:
        super().__init__(method=method, temperature=temperature, **options)
        self.k = _check.counts("k", k)
        _check.positive("edge", edge)
        self.edge = edge

    def _losses(
        self, x: Tensor, wanted: Tensor, present: Tensor, weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        share = shares((wanted > 0) & present, weights, x)
        found = recomputed(self._found, self._ranks(x, weights=weights), share)
        return 1 - found, share.sum(-1) > 0

    def _found(self, ranks: Tensor, share: Tensor) -> Tensor:
        inside = torch.stack([torch.sigmoid((k - ranks) / self.edge) for k in self.k]).mean(0)
        return mean_of(inside, share)[0]

    def extra_repr(self) -> str:
        return f"k={self.k}, {super().extra_repr()}, edge={self.edge}"


def retrieval_loss(
    criterion: Callable[..., Tensor],
    queries: Tensor,
    labels: Tensor,
    items: Tensor | None = None,
    item_labels: Tensor | None = None,
    *,
    chunk: int | None = None,
    weights: Tensor | None = None,
) -> Tensor:
    """A loss of lists for embeddings: every query ranks all items, those of its label are relevant.

    Scores are the products <query, item>: cosines, if the embeddings have length 1. Without items
    the queries rank each other, and none ranks itself. So many queries are taken at a time as
    `chunk` says, and again on the way back: the scores of all queries, and what the loss makes of
    them, never exist at once. Memory O(chunk · items) instead of O(queries · items), and the same
    loss and gradient, but for roundings.

    Args:
        criterion: any loss of lists, with reduction="sum" or "none": the mean is taken here, over
            the queries that have something relevant to find. (A loss that counts other lists than
            these, as `PrecisionAtK` does, is 0 for lists that are left out.)
        queries: (q, width).
        labels: (q,), of any dtype that can be compared.
        items: (m, width), or None for the queries.
        item_labels: (m,), with the items.
        chunk: how many queries at a time; None for about four million scores.
        weights: how much each item counts, (m,), as the criterion takes them; None for 1.

    >>> import torch, softorder as so
    >>> generator = torch.Generator().manual_seed(0)
    >>> points = torch.randn(6, 4, generator=generator).requires_grad_()
    >>> criterion = so.losses.SmoothAPLoss(reduction="sum")
    >>> labels = torch.tensor([0, 0, 1, 1, 2, 2])
    >>> unit = torch.nn.functional.normalize(points, dim=-1)
    >>> whole = so.losses.retrieval_loss(criterion, unit, labels)
    >>> parts = so.losses.retrieval_loss(criterion, unit, labels, chunk=2)
    >>> torch.allclose(whole, parts)
    True
    """
    _check.retrieval.embeddings(queries, labels, items, item_labels)
    _check.retrieval.sums(criterion)
    if weights is not None:
        _check.weights.per_score(weights, labels if item_labels is None else item_labels)
    if chunk is not None:
        _check.count("chunk", chunk, least=1)
    alone = items is None
    every, classes = (queries, labels) if items is None else (items, item_labels)
    assert classes is not None
    size = chunk or max(_SCORES // max(len(every), 1), 1)
    total, count = queries.sum() * 0, torch.zeros((), dtype=torch.long, device=queries.device)
    for start in range(0, len(queries), size):
        part, wanted = queries[start : start + size], labels[start : start + size]
        relevant = wanted.unsqueeze(-1) == classes
        mask = torch.ones_like(relevant)
        if alone:
            place = torch.arange(start, start + len(part), device=queries.device)
            mask = mask.scatter(-1, place.unsqueeze(-1), False)
        call = _Part(criterion, relevant, mask, weights)
        whole = size >= len(queries)
        total = total + (call(part, every) if whole else _again(call, part, every))
        count = count + call.judged.sum()
    return total / count


class _Part:
    """The loss of some queries."""

    def __init__(
        self,
        criterion: Callable[..., Tensor],
        relevant: Tensor,
        mask: Tensor,
        weights: Tensor | None,
    ) -> None:
        self.criterion, self.relevant, self.mask = criterion, relevant, mask
        self.options = {} if weights is None else {"weights": weights}
        counted = relevant & mask if weights is None else relevant & mask & (weights > 0)
        self.judged = counted.any(-1, keepdim=True)

    def __call__(self, queries: Tensor, items: Tensor) -> Tensor:
        scores, mask = queries @ items.mT, self.mask & self.judged
        return self.criterion(scores, self.relevant, mask, **self.options).sum()


def _again(call: _Part, queries: Tensor, items: Tensor) -> Tensor:
    """Nothing is kept for the way back."""
    found: Tensor = checkpoint(call, queries, items, use_reentrant=False, preserve_rng_state=False)
    return found
