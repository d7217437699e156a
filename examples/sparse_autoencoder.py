"""Sparse autoencoders of a network's hidden states: k of n features rebuild each of them.

A small GRU learns to spell the words of CMUdict, letter by letter. Its hidden states are what the
autoencoders see: x ≈ decode(y), where y has k of 512 features that are not 0. What differs is how
these are chosen, and what the choice tells the features that are left out:

    TopK                hard top-k of every state; the chosen features learn, the others do not
    BatchTopK           the same of a whole batch, k on average; in use, a running threshold
    JumpReLU            a threshold for each feature, learned by a straight-through estimate under
                        a penalty that holds the mean number of features at k
    so.nn.TopKActivation    a soft top-k that is cooled down; everything near the threshold learns
    ... straight-through    the hard choice with the derivative of the soft one, at one temperature
    so.nn.BatchTopK         the same two of a whole batch

In use all of them have k features on average. Every arm is tuned alike, by the variance that it
explains of held-out states: first its learning rate from the same three, then what it has of its
own, a temperature or the width of JumpReLU's estimate, or a finer learning rate, from three values.
No arm has a loss for dead features.

    python -m examples.sparse_autoencoder --quick     # a few seconds, no download
    python -m examples.sparse_autoencoder             # minutes; writes examples/results
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

import softorder as so
from examples.study import FINER, Setting, Study, dots_of, main
from examples.words import END, LETTERS, padded, words
from experiments.contest import Contest
from experiments.data.sources import cache
from experiments.trials import Column, Figures

BASELINES = ("TopK", "BatchTopK", "JumpReLU")
SOFT = ("so.nn.TopKActivation", "so.nn.BatchTopK")
ARMS = (*BASELINES, *(name for soft in SOFT for name in (soft, f"{soft}, straight-through")))
COOLED = 4  # times colder at the end


@dataclass(frozen=True)
class Config:
    words: int
    width: int  # of the GRU
    spelling: int  # steps of its training
    features: int
    k: int
    steps: int
    batch: int
    seeds: int
    quick: bool = False


class Speller(nn.Module):
    """Which letter comes next?"""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, 16)
        self.cell, self.out = nn.GRU(16, width, batch_first=True), nn.Linear(width, LETTERS)

    def forward(self, spelled: Tensor) -> tuple[Tensor, Tensor]:
        states, _ = self.cell(self.letters(spelled.clamp(min=END)))
        return self.out(states), states


@lru_cache
def states(config: Config) -> tuple[Tensor, Tensor, Tensor]:
    """Hidden states of words to train with, to validate with, to test with; kept in the cache."""
    known = f"{config.words}_{config.width}_{config.spelling}"
    kept = cache() / "examples" / f"spelling_{known}.pt"
    if kept.exists() and not config.quick:
        return tuple(torch.load(kept, weights_only=True))
    torch.manual_seed(0)
    spelled = padded(words(config.words, config.quick))
    model = Speller(config.width)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(config.spelling):
        rows = spelled[torch.randint(len(spelled), (128,))]
        logits, _ = model(rows[:, :-1])
        loss = nn.functional.cross_entropy(logits.mT, rows[:, 1:], ignore_index=-1)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        parts = spelled.tensor_split([len(spelled) * 8 // 10, len(spelled) * 9 // 10])
        found = tuple(model(part[:, :-1])[1][part[:, 1:] >= 0] for part in parts)
    scale = found[0].sub(found[0].mean(0)).square().mean().sqrt()
    found = tuple((part - found[0].mean(0)) / scale for part in found)
    if not config.quick:
        kept.parent.mkdir(parents=True, exist_ok=True)
        torch.save(found, kept)
    return found


class JumpReLU(nn.Module):
    """y = x [x > θ]; θ learns by a kernel of width ε in the place of the jump's derivative."""

    def __init__(self, features: int, width: float) -> None:
        super().__init__()
        self.width = width
        self.log_threshold = nn.Parameter(torch.full((features,), -1.0))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """y, and how many features are on in each row, both with a gradient for θ."""
        threshold = self.log_threshold.exp()
        near = ((x - threshold).abs() < self.width / 2).to(x.dtype).detach() / self.width
        move = -near * (threshold - threshold.detach())  # of [x > θ], in its first order
        on = (x > threshold).to(x.dtype) + move
        return x * (x > threshold) + threshold.detach() * move, on.sum(-1)


class Autoencoder(nn.Module):
    def __init__(self, arm: str, own: float, config: Config) -> None:
        super().__init__()
        self.arm, self.k = arm, config.k
        self.encoder = nn.Linear(config.width, config.features)
        self.decoder = nn.Linear(config.features, config.width)
        with torch.no_grad():
            self.decoder.weight.copy_(nn.functional.normalize(self.decoder.weight, dim=0))
            self.encoder.weight.copy_(self.decoder.weight.T)
            self.encoder.bias.zero_()
        hard = arm.endswith("straight-through")
        kinds: dict[str, Callable[[], nn.Module]] = {
            "JumpReLU": lambda: JumpReLU(config.features, own),
            SOFT[0]: lambda: so.nn.TopKActivation(self.k, hard=hard),
            SOFT[1]: lambda: so.nn.BatchTopK(config.features, self.k, hard=hard),
        }
        kind = arm.partition(",")[0]
        self.activation = kinds[kind]() if kind in kinds else None

    def code(self, x: Tensor) -> tuple[Tensor, Tensor | float]:
        """Features, and what their number costs."""
        x = self.encoder(x)
        if self.arm == "TopK":
            best = x.topk(self.k, -1)
            return torch.zeros_like(x).scatter(-1, best.indices, best.values.relu()), 0.0
        if self.arm == "BatchTopK":
            least = x.detach().flatten().topk(self.k * len(x)).values[-1]
            return x.relu() * (x >= least), 0.0
        if self.arm == "JumpReLU":
            y, count = self.activation(x)
            return y, (count.mean() / self.k - 1).square()
        return self.activation(x), 0.0


@torch.no_grad()
def threshold(model: Autoencoder, x: Tensor) -> Tensor:
    """For k features on average; of JumpReLU, what has to be added to every threshold for that."""
    scores = model.encoder(x)
    if model.arm == "JumpReLU":
        scores = scores - model.activation.log_threshold.exp()
    share = 1 - model.k / scores.shape[-1]
    return so.hard.quantile(scores, share, dim=None)


@torch.no_grad()
def judge(model: Autoencoder, x: Tensor, level: Tensor) -> tuple[float, float, Tensor]:
    """The part of the variance that is explained, features per state, and which are ever used."""
    model.eval()
    if model.arm in ("BatchTopK", "JumpReLU"):
        scores = model.encoder(x)
        own = model.activation.log_threshold.exp() if model.arm == "JumpReLU" else 0.0
        code = scores.relu() * (scores - own > level)
    else:
        code, _ = model.code(x)
    missed = (model.decoder(code) - x).square().sum() / (x - x.mean(0)).square().sum()
    return 1 - missed.item(), (code != 0).sum(-1).float().mean().item(), (code != 0).any(0)


def temperatures(arm: str, own: float, steps: int) -> so.schedules.Schedule:
    if arm.endswith("straight-through"):
        return so.schedules.Linear(own, own, steps)
    return so.schedules.Exponential(own, own / COOLED, steps)


def trial(arm: str, seed: int, setting: Setting, config: Config) -> Figures:
    training, validation, test = states(config)
    torch.manual_seed(seed)
    own, soft = setting["own"], arm.startswith(SOFT)
    model = Autoencoder(arm, own, config)
    rate = setting["rate"] * (1.0 if soft or arm == "JumpReLU" else own)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    cooling = so.schedules.Scheduler(model, temperatures(arm, own, config.steps)) if soft else None
    for step in range(config.steps):
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, 4 * (1 - step / config.steps))
        x = training[torch.randint(len(training), (config.batch,))]
        code, cost = model.code(x)
        loss = (model.decoder(code) - x).square().mean() + cost
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if cooling is not None:
            cooling.step()
    level = threshold(model, training[:20_000])
    explained, count, used = judge(model, test, level)
    return {
        "explained": explained,
        "k": count,
        "dead": 1 - used.float().mean().item(),
        "validation": judge(model, validation, level)[0],
    }


COLUMNS = (
    Column("explained", "variance explained, %", 2, 100),
    Column("dead", "dead features, %", 1, 100),
    Column("k", "features per state", 2),
    Column("rate", "learning rate", 4),
    Column("own", "own setting", 2),
)


def settings(arm: str) -> dict[str, tuple[float, ...]]:
    if arm.endswith("straight-through"):
        own = (1.0, 0.3, 3.0)
    elif arm in SOFT:
        own = (0.2, 0.08, 0.5)
    else:
        own = (0.5, 0.15, 1.5) if arm == "JumpReLU" else FINER
    return {"rate": (1e-2, 3e-3, 3e-2), "own": own}


STUDY = Study(
    name="sparse_autoencoder",
    title="Sparse autoencoders of the hidden states of a GRU that spells",
    arms=ARMS,
    trial=trial,
    settings=settings,
    full=Config(20_000, 64, 400, 512, 8, 600, 256, 3),
    quick=Config(300, 16, 5, 48, 4, 15, 64, 1, quick=True),
    columns=COLUMNS,
    contests=(
        Contest("explained", "explained variance", True, 2, 100, " %"),
        Contest("dead", "share of dead features", False, 1, 100, " %"),
    ),
    baselines=BASELINES,
    draw=dots_of(*COLUMNS[:2]),
)


if __name__ == "__main__":
    main(STUDY, __doc__)
