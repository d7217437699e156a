"""Metrics of lists: scores on one side, relevances on the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.losses._gains import GAINS, best_sum, discounts, gains
from softorder.losses._lists import reduce_rows
from softorder.metrics._places import Places

Cut = int | Sequence[int] | None  #: how many places are judged: a number, several, or None for all
Rule = Callable[[Places, int | None], Tensor]  #: of every list, where something is relevant


class Judged(NamedTuple):
    """The values of every list, one for each k on the last axis, and which lists count."""

    values: Tensor
    counts: Tensor


def ndcg(
    scores: Tensor,
    relevance: Tensor,
    k: Cut = None,
    *,
    gain: str = "linear",
    dim: int = -1,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    empty: float | None = None,
    reduction: str = "mean",
) -> Tensor:
    """NDCG@k, the discounted gains of the first k places, divided by those of the best order:

        DCG = Σ_{p<=k} gain_p/log2(1 + p)

    Equal scores share their places as if the order were drawn: each has the expected value. So it
    is sklearn's ndcg_score.

    Args:
        scores: of any shape; the larger, the further in front. -inf takes no part, NaN makes its
            list NaN.
        relevance: >= 0, with the shape of scores; what is > 0 is relevant.
        k: how many places are judged; several numbers for one result each, None for all places.
        gain: "linear" for the relevance itself, "exponential" for 2^relevance - 1.
        dim: the axis of the lists.
        mask: boolean, broadcasts to scores; False is padding and takes no part.
        weight: how much each list counts, numbers >= 0 that broadcast over the lists.
        empty: the value of a list that has nothing relevant; None for lists that do not count.
        reduction: "mean" over the lists that count, "sum", or "none" for one number per list, 0
            where it does not count.

    Returns:
        In float64; with several k one for each, on the last axis. The mean of nothing is NaN.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([[3.0, 1.0, 2.0]]), torch.tensor([[3, 2, 0]])
    >>> so.metrics.ndcg(scores, relevance, k=(1, 3))
    tensor([1.0000, 0.9386], dtype=torch.float64)
    """
    _check.choice("gain", gain, GAINS)
    rule = partial(_ndcg, gain=gain)
    return _metric(rule, scores, relevance, k, dim, mask, weight, empty, reduction)


def mrr(
    scores: Tensor,
    relevance: Tensor,
    k: Cut = None,
    *,
    dim: int = -1,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    empty: float | None = None,
    reduction: str = "mean",
) -> Tensor:
    """MRR@k, the mean reciprocal rank: 1/place of the first relevant element, 0 beyond k.

    Equal scores share their places as if the order were drawn. The arguments are those of `ndcg`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> so.metrics.mrr(scores, relevance).item()
    0.5
    """
    return _metric(_mrr, scores, relevance, k, dim, mask, weight, empty, reduction)


def average_precision(
    scores: Tensor,
    relevance: Tensor,
    k: Cut = None,
    *,
    dim: int = -1,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    empty: float | None = None,
    reduction: str = "mean",
) -> Tensor:
    """MAP@k, the mean over the lists of the average precision:

        AP = (1/min(R, k)) Σ over places p <= k of relevant elements of precision@p

    with R relevant elements in the list. Without a k it is sklearn's average_precision_score for
    distinct scores; equal ones share their places as if the order were drawn, where sklearn takes
    the precision behind all of them. The arguments are those of `ndcg`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> round(so.metrics.average_precision(scores, relevance).item(), 4)
    0.5833
    """
    return _metric(_average_precision, scores, relevance, k, dim, mask, weight, empty, reduction)


def precision(
    scores: Tensor,
    relevance: Tensor,
    k: Cut = None,
    *,
    dim: int = -1,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    empty: float | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Precision@k: how many of the first k places have something relevant, divided by k.

    A list shorter than k has empty places, which are misses; without a k all its elements are
    judged. Equal scores share their places as if the order were drawn. The arguments are those of
    `ndcg`; empty=0 counts lists without anything relevant, as `so.losses.PrecisionAtK` does.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> so.metrics.precision(scores, relevance, 2).item()
    0.5
    """
    return _metric(_precision, scores, relevance, k, dim, mask, weight, empty, reduction)


def recall(
    scores: Tensor,
    relevance: Tensor,
    k: Cut = None,
    *,
    dim: int = -1,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    empty: float | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Recall@k: how much of what is relevant stands in the first k places.

    Equal scores share their places as if the order were drawn. The arguments are those of `ndcg`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> so.metrics.recall(scores, relevance, 2).item()
    0.5
    """
    return _metric(_recall, scores, relevance, k, dim, mask, weight, empty, reduction)


def hit_rate(
    scores: Tensor,
    relevance: Tensor,
    k: Cut = None,
    *,
    dim: int = -1,
    mask: Tensor | None = None,
    weight: Tensor | None = None,
    empty: float | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The share of lists that have something relevant in the first k places.

    Equal scores share their places as if the order were drawn. The arguments are those of `ndcg`.

    >>> import torch, softorder as so
    >>> scores, relevance = torch.tensor([3.0, 1.0, 2.0]), torch.tensor([0, 1, 1])
    >>> so.metrics.hit_rate(scores, relevance, (1, 2)).tolist()
    [0.0, 1.0]
    """
    return _metric(_hit_rate, scores, relevance, k, dim, mask, weight, empty, reduction)


# ---- the rules, for lists with something relevant ----------------------------------------------


def _ndcg(places: Places, k: int | None, gain: str) -> Tensor:
    worth = gains(places.relevance, gain)
    found = places.expected(worth) * discounts(worth.shape[-1], worth)
    best = best_sum(worth, k)
    return places.up_to(found, k) / torch.where(best > 0, best, 1.0)


def _mrr(places: Places, k: int | None) -> Tensor:
    return places.up_to(places.first_hits() / places.number, k)


def _average_precision(places: Places, k: int | None) -> Tensor:
    wanted = places.relevant if k is None else places.relevant.clamp(max=k)
    return places.up_to(places.precisions(), k) / wanted.clamp(min=1)


def _precision(places: Places, k: int | None) -> Tensor:
    size = places.live.sum(-1).clamp(min=1) if k is None else k
    return places.up_to(places.hits(), k) / size


def _recall(places: Places, k: int | None) -> Tensor:
    return places.up_to(places.hits(), k) / places.relevant.clamp(min=1)


def _hit_rate(places: Places, k: int | None) -> Tensor:
    return places.up_to(places.first_hits(), k)


RULES: dict[str, Callable[..., Tensor]] = {
    "ndcg": _ndcg,
    "mrr": _mrr,
    "average_precision": _average_precision,
    "precision": _precision,
    "recall": _recall,
    "hit_rate": _hit_rate,
}


# ---- what they share ---------------------------------------------------------------------------


def cuts(k: Cut) -> tuple[int | None, ...]:
    """All of them."""
    return (None,) if k is None else _check.counts("k", k)


@torch.no_grad()
def judged(
    rule: Rule,
    scores: Tensor,
    relevance: Tensor,
    k: Cut,
    dim: int,
    mask: Tensor | None,
    empty: float | None,
) -> Judged:
    """Every list by itself."""
    _check.scores(scores, dim)
    _check.mask(mask, scores)
    _check.targets.relevance("relevance", relevance, scores)
    ks = cuts(k)
    x = _axis.rows(scores, dim, largest=True, mask=mask)
    wanted = torch.where(x != -torch.inf, _axis.last(relevance, dim).double(), 0.0)
    _check.targets.no_negatives("relevance", wanted)
    if x.shape[-1] == 0:
        values = torch.zeros(*x.shape[:-1], len(ks), dtype=torch.float64, device=x.device)
        some = values[..., 0] != 0
    else:
        places = Places.of(x, wanted)
        values = torch.stack([rule(places, one) for one in ks], -1)
        values = torch.where(places.spoiled.unsqueeze(-1), torch.nan, values)
        some = places.relevant > 0
    if empty is None:
        return Judged(torch.where(some.unsqueeze(-1), values, 0.0), some)
    _check.number("empty", empty)
    return Judged(torch.where(some.unsqueeze(-1), values, empty), torch.ones_like(some))


def sums(found: Judged, scores: Tensor, dim: int, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """Over all lists: the values, one for each k, and how much these lists count together."""
    _check.weights.per_list(weight, scores, dim)
    shares = found.counts.double()
    if weight is not None:
        shares = shares * weight.double()
    values = (found.values * shares.unsqueeze(-1)).reshape(-1, found.values.shape[-1])
    return values.sum(0), shares.sum()


def _metric(
    rule: Rule,
    scores: Tensor,
    relevance: Tensor,
    k: Cut,
    dim: int,
    mask: Tensor | None,
    weight: Tensor | None,
    empty: float | None,
    reduction: str,
) -> Tensor:
    found = judged(rule, scores, relevance, k, dim, mask, empty)
    _check.reduction(reduction)
    _check.weights.per_list(weight, scores, dim)
    each = [
        reduce_rows(values, found.counts, reduction, torch.float64, weight=weight)
        for values in found.values.unbind(-1)
    ]
    return torch.stack(each, -1) if isinstance(k, Sequence) else each[0]
