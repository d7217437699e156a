"""The sums over pairs in plain torch, all pairs of all rows at once."""

from __future__ import annotations

from enum import IntEnum

import torch
from torch import Tensor
from torch.nn.functional import softplus


class Weighing(IntEnum):
    """What the weights of pairs are made of, by the numbers of csrc/pairs/terms.hpp."""

    PRODUCT = 0
    FIRST = 1
    EXCHANGE = 2
    BOUND = 3
    BOTH = 4


def pair_sums(
    x: Tensor,
    grades: Tensor,
    own: Tensor | None,
    scores: Tensor | None,
    discount: Tensor | None,
    bound: Tensor | None,
    weighing: int,
    first: int,
    hinge: bool,
    slopes: bool,
) -> tuple[Tensor, Tensor]:
    present = grades > -torch.inf
    pair = _by_rows(grades) > _by_columns(grades)
    pair = pair & _by_columns(present)
    own = torch.where(present, 1.0 if own is None else own, 0.0).to(x.dtype)
    if weighing == Weighing.PRODUCT:
        weights = _by_rows(own) * _by_columns(own)
        second = torch.where(pair, weights, 0.0).sum((-1, -2), dtype=torch.float64)
    else:
        assert scores is not None
        assert discount is not None
        weights = _of_places(own, _places(scores), discount, bound, weighing, first)
        ordered = own.gather(-1, grades.argsort(dim=-1, descending=True))
        second = (ordered * discount).sum(-1, dtype=torch.float64)
    u = _by_rows(x) - _by_columns(x)
    terms = torch.where(pair, weights * (torch.relu(1 - u) if hinge else softplus(-u)), 0.0)
    sums = terms.sum((-1, -2), dtype=torch.float64)
    found = torch.stack([sums, second, pair.sum((-1, -2)).double()])
    if not slopes:
        return found, x.new_empty(0)
    rate = -(u < 1).to(x.dtype) if hinge else -torch.sigmoid(-u)
    rate = torch.where(pair, weights * rate, 0.0)
    return found, rate.sum(-1) - rate.sum(-2)


def _by_rows(values: Tensor) -> Tensor:
    return values.unsqueeze(-1)


def _by_columns(values: Tensor) -> Tensor:
    return values.unsqueeze(-2)


def _places(scores: Tensor) -> Tensor:
    """Of the largest score 0, and so on."""
    return (-scores).argsort(dim=-1, stable=True).argsort(-1)


def _of_places(
    own: Tensor,
    place: Tensor,
    discount: Tensor,
    bound: Tensor | None,
    weighing: int,
    first: int,
) -> Tensor:
    at = discount[place]
    if weighing == Weighing.FIRST:
        return _by_rows(own * at).expand(*own.shape, own.shape[-1])
    gained = (_by_rows(own) - _by_columns(own)).abs()
    real = (_by_rows(at) - _by_columns(at)).abs()
    if weighing == Weighing.EXCHANGE:
        return gained * real
    assert bound is not None
    within = (_by_rows(place) < first) | (_by_columns(place) < first)
    apart = (_by_rows(place) - _by_columns(place)).abs()
    limit = torch.where(within, bound[apart], 0.0)
    return gained * (limit if weighing == Weighing.BOUND else real + limit)
