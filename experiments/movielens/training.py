"""Matrix factorisation: a vector for every user and every film, and how they are learned."""

from __future__ import annotations

import copy
import statistics
import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn

import softorder as so
from experiments.movielens.config import Config
from experiments.movielens.data import Data, Drawer, Part
from experiments.movielens.losses import criterion


@dataclass(frozen=True)
class Choice:
    """What is tuned."""

    rate: float
    temperature: float


class Factors(nn.Module):
    """<user, film> + how popular the film is."""

    def __init__(self, users: int, films: int, width: int) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(users, width), nn.Embedding(films, width)
        self.popularity = nn.Embedding(films, 1)
        for table in (self.users, self.films):
            nn.init.normal_(table.weight, std=0.1)
        nn.init.zeros_(self.popularity.weight)

    def forward(self, users: Tensor) -> Tensor:
        """Scores of all films, (users, films)."""
        return self.users(users) @ self.films.weight.T + self.popularity.weight.T

    @torch.no_grad()
    def everything(self) -> Tensor:
        """Those of all users."""
        return self.users.weight @ self.films.weight.T + self.popularity.weight.T


@dataclass(frozen=True)
class Outcome:
    model: Factors
    validation: float  #: NDCG of the best epoch that was looked at, which is that of the model
    epoch: int
    seconds: float  #: of the processor for an epoch, the median


def train(arm: str, data: Data, config: Config, choice: Choice, seed: int) -> Outcome:
    torch.manual_seed(seed)
    model = Factors(*data.training.shape, config.width)
    loss = criterion(arm, choice.temperature)
    optimiser = torch.optim.AdamW(
        model.parameters(), lr=choice.rate, weight_decay=config.weight_decay
    )
    lists_of, generator = Drawer(data.training, config), torch.Generator().manual_seed(seed)
    best, kept, found, seconds = -1.0, model, 0, []
    for epoch in range(1, config.epochs + 1):
        start = time.process_time()
        users = torch.randperm(len(data.training), generator=generator)
        for part in users.split(config.batch):
            lists = lists_of.draw(part, generator)
            scores = model(lists.users).gather(-1, lists.films)
            value = loss(scores, lists.relevance, lists.mask)
            optimiser.zero_grad()
            value.backward()
            optimiser.step()
        seconds.append(time.process_time() - start)
        if epoch % config.look == 0 or epoch == config.epochs:
            score = ndcg(model, data.validation, config)
            if score > best:
                best, kept, found = score, copy.deepcopy(model), epoch
    return Outcome(kept, best, found, statistics.median(seconds))


def ndcg(model: Factors, part: Part, config: Config) -> float:
    scores = model.everything()
    return so.metrics.ndcg(scores, part.relevance, config.judged, mask=part.mask).item()


def judge(model: Factors, part: Part, config: Config) -> dict[str, float]:
    """All metrics, over the users who have something to be found."""
    scores, k = model.everything(), config.judged
    metrics = {
        "ndcg": (so.metrics.ndcg, k),
        "mrr": (so.metrics.mrr, None),
        "map": (so.metrics.average_precision, None),
        "recall": (so.metrics.recall, k),
        "precision": (so.metrics.precision, k),
    }
    return {
        name: metric(scores, part.relevance, cut, mask=part.mask).item()
        for name, (metric, cut) in metrics.items()
    }
