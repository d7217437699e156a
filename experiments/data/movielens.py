"""MovieLens-100k as recbole has it: a table with a head, one rating a line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from experiments.data.sources import SOURCES, locate
from experiments.data.unpacking import content

_HEAD = ("user_id", "item_id", "rating")


@dataclass(frozen=True)
class Ratings:
    """Who rated what, from 1 to 5; users and items are numbered from 0."""

    user: Tensor
    item: Tensor
    rating: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """How many users and items there are."""
        return int(self.user.max()) + 1, int(self.item.max()) + 1

    def table(self, chosen: Tensor) -> Tensor:
        """The ratings of some lines as (users, items), 0 where there is none."""
        table = torch.zeros(self.shape)
        table[self.user[chosen], self.item[chosen]] = self.rating[chosen]
        return table


def load(folder: Path | None = None, fetch: bool = False) -> Ratings:
    (path,) = SOURCES["movielens"].paths(locate("movielens", folder, fetch))
    return read(path)


def read(path: Path) -> Ratings:
    text = content(path).decode("utf-8")
    head, *lines = (line.split("\t") for line in text.splitlines())
    names = [name.partition(":")[0] for name in head]
    missing = [name for name in _HEAD if name not in names]
    if missing:
        raise SystemExit(f"{path}: its first line has no {', '.join(missing)}")
    user, item, rating = ([line[names.index(name)] for line in lines] for name in _HEAD)
    return Ratings(_numbered(user), _numbered(item), torch.tensor([float(r) for r in rating]))


def _numbered(tokens: list[str]) -> Tensor:
    """By the order in which they first appear."""
    numbers = {token: i for i, token in enumerate(dict.fromkeys(tokens))}
    return torch.tensor([numbers[token] for token in tokens])
