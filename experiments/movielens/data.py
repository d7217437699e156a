"""The ratings of every user in three parts, and lists to learn from."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from experiments.data.movielens import Ratings
from experiments.movielens.config import Config


@dataclass(frozen=True)
class Part:
    """What is to be found, (users, films): relevances, and which films may be shown."""

    relevance: Tensor
    mask: Tensor


@dataclass(frozen=True)
class Data:
    training: Tensor  #: relevances (users, films)
    validation: Part
    test: Part


def split(ratings: Ratings, config: Config, seed: int) -> Data:
    """Of each user's ratings by chance; what was rated in another part is not to be found."""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(ratings.user), generator=generator)
    place = _place_within(ratings.user[order])
    share = torch.empty(len(order), dtype=torch.float64)
    share[order] = place
    test = share < config.test
    validation = ~test & (share < config.test + config.validation)
    training = ~test & ~validation
    seen, later, last = (ratings.table(part) for part in (training, validation, test))
    return Data(
        _relevance(seen, config),
        Part(_relevance(later, config), seen == 0),
        Part(_relevance(last, config), (seen == 0) & (later == 0)),
    )


def _place_within(users: Tensor) -> Tensor:
    """Of every line among those of its user, from 0 to 1."""
    counts = torch.bincount(users)
    by_user = users.argsort(stable=True)
    before = counts.cumsum(0) - counts
    place = torch.empty(len(users), dtype=torch.float64)
    place[by_user] = (torch.arange(len(users)) - before[users[by_user]]).double()
    return place / counts[users]


def _relevance(table: Tensor, config: Config) -> Tensor:
    """1 for what is liked, 2 for what has one more star."""
    return (table - config.liked + 1).clamp(min=0)


@dataclass(frozen=True)
class Lists:
    """For some users: films, their relevances, and which places of the list are filled."""

    users: Tensor
    films: Tensor
    relevance: Tensor
    mask: Tensor


class Drawer:
    """Films that a user likes, and others by chance: all alike for every loss."""

    def __init__(self, training: Tensor, config: Config) -> None:
        self.training, self.config = training, config
        liked = training > 0
        self.most = int(liked.sum(-1).max())
        self.liked = liked.byte().argsort(dim=-1, descending=True, stable=True)[:, : self.most]
        self.count = liked.sum(-1, keepdim=True)

    def draw(self, users: Tensor, generator: torch.Generator) -> Lists:
        """The others are the same films for all these users, but for those that one likes."""
        chance = torch.rand(len(users), self.most, generator=generator)
        filled = torch.arange(self.most) < self.count[users]
        best = torch.where(filled, chance, -1.0).topk(min(self.config.relevant, self.most))
        liked = self.liked[users].gather(-1, best.indices)
        shown = torch.randperm(self.training.shape[-1], generator=generator)[: self.config.others]
        others = shown.expand(len(users), -1)
        films = torch.cat([liked, others], -1)
        relevance = self.training[users].gather(-1, films)
        free = relevance[:, liked.shape[-1] :] == 0
        return Lists(users, films, relevance, torch.cat([best.values >= 0, free], -1))
