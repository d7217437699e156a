"""Mixtures of experts: which k of E small networks work for a token, and are all of them used?

The next letter of the words of CMUdict from the five before it. One hidden layer is a mixture:
every context is sent to 2 of 8 experts, which are carried out for it and no others, so all routers
cost the same; "dense" is one network as large as the two. Routers:

    softmax, then top-k         the two largest of a softmax of the scores, normalised; a loss asks
                                for equal loads (Fedus et al. 2021), or nothing does
    sigmoid with bias           weights σ(scores), normalised over the two; a bias for each expert,
                                moved against its load, takes part in the choice alone
                                (Wang et al. 2024)
    so.nn.TopKRouter, bias      soft top-k weights, which sum to 2 before the choice; same bias
    ..., exact balance          the bias is the price at which the soft loads of a batch are equal
    ..., adaptive               2 experts on average: contexts of a batch share the places

Every arm is tuned alike, by the loss of held-out words: first its learning rate from the same
three, then what it has of its own, from three values: the weight of the balance loss, the pace of
the sigmoid's bias, a temperature; or a finer learning rate.

    python -m examples.mixture_of_experts --quick     # a few seconds, no download
    python -m examples.mixture_of_experts             # minutes; writes examples/results
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

import softorder as so
from examples.study import FINER, Setting, Study, dots_of, main
from examples.words import END, LETTERS, numbers, words
from experiments.contest import Contest
from experiments.trials import Column, Figures

CONTEXT, WIDTH, K = 5, 48, 2
BASELINES = (
    "dense",
    "softmax, then top-k",
    "softmax, then top-k, balance loss",
    "sigmoid with bias",
)
ROUTERS = {
    "so.nn.TopKRouter, bias": {"balance": "bias"},
    "so.nn.TopKRouter, exact balance": {"balance": "exact"},
    "so.nn.TopKRouter, adaptive": {"balance": "bias", "adaptive": True},
}
ARMS = (*BASELINES, *ROUTERS)
OWN = {
    "softmax, then top-k, balance loss": (0.01, 0.001, 0.1),
    "sigmoid with bias": (0.01, 0.001, 0.1),
    **dict.fromkeys(ROUTERS, (0.5, 0.2, 1.0)),
}


@dataclass(frozen=True)
class Config:
    words: int
    experts: int
    steps: int
    batch: int
    seeds: int
    quick: bool = False


@lru_cache
def contexts(config: Config) -> tuple[tuple[Tensor, Tensor], ...]:
    """The letters before, and the next one: of words to train, to validate and to test with."""
    known = words(config.words, config.quick)
    cuts = len(known) * 8 // 10, len(known) * 9 // 10
    parts = []
    for chosen in (known[: cuts[0]], known[cuts[0] : cuts[1]], known[cuts[1] :]):
        before, after = [], []
        for word in chosen:
            spelled = [END] * (CONTEXT - 1) + numbers(word)
            for place in range(CONTEXT, len(spelled)):
                before.append(spelled[place - CONTEXT : place])
                after.append(spelled[place])
        parts.append((torch.tensor(before), torch.tensor(after)))
    return tuple(parts)


class PlainRouter(nn.Module):
    """Softmax or sigmoid of the scores, the k largest of them."""

    bias: Tensor

    def __init__(self, experts: int, pace: float | None) -> None:
        super().__init__()
        self.linear, self.pace = nn.Linear(WIDTH, experts, bias=False), pace
        self.register_buffer("bias", torch.zeros(experts))

    def forward(self, x: Tensor) -> so.nn.Routing:
        scores = self.linear(x)
        probs = scores.softmax(-1) if self.pace is None else scores.sigmoid()
        best = (probs.detach() + self.bias).topk(K, -1).indices
        chosen = torch.zeros_like(probs, dtype=torch.bool).scatter(-1, best, True)
        weights = torch.where(chosen, probs, 0.0)
        if self.pace is not None and self.training:
            counts = chosen.sum(0).float()
            self.bias.add_(self.pace * torch.sign(counts.mean() - counts))
        return so.nn.Routing(weights / weights.sum(-1, keepdim=True), chosen, probs)


def expert(hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, hidden), nn.GELU(), nn.Linear(hidden, WIDTH))


class Speller(nn.Module):
    def __init__(self, arm: str, experts: int, own: float) -> None:
        super().__init__()
        self.letters = nn.Embedding(LETTERS, 12)
        self.into, self.out = nn.Linear(12 * CONTEXT, WIDTH), nn.Linear(WIDTH, LETTERS)
        self.router: nn.Module | None = None
        if arm == "dense":
            self.experts = nn.ModuleList([expert(K * WIDTH)])
            return
        self.experts = nn.ModuleList(expert(WIDTH) for _ in range(experts))
        if arm in ROUTERS:
            options = {"temperature": own, **ROUTERS[arm]}
            self.router = so.nn.TopKRouter(WIDTH, experts, K, **options)
        else:
            self.router = PlainRouter(experts, own if arm.startswith("sigmoid") else None)

    def forward(self, before: Tensor) -> tuple[Tensor, so.nn.Routing | None]:
        x = self.into(self.letters(before).flatten(1)).relu()
        if self.router is None:
            return self.out(x + self.experts[0](x)), None
        routing = self.router(x)
        return self.out(x + routing.mix(x, self.experts)), routing


@torch.no_grad()
def judge(model: Speller, part: tuple[Tensor, Tensor]) -> dict[str, float]:
    """Bits for a letter, the largest load (1 if all are equal), experts for a context."""
    logits, routing = model.eval()(part[0])
    bits = nn.functional.cross_entropy(logits, part[1]).item() / math.log(2)
    if routing is None:
        return {"bits": bits}
    count = routing.chosen.sum(-1).float().mean().item()
    return {"bits": bits, "load": routing.load().max().item(), "count": count}


def trial(arm: str, seed: int, setting: Setting, config: Config) -> Figures:
    (before, after), validation, test = contexts(config)
    torch.manual_seed(seed)
    own = setting["own"]
    model = Speller(arm, config.experts, own)
    rate = setting["rate"] * (own if OWN.get(arm, FINER) is FINER else 1.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(config.steps):
        optimiser.param_groups[0]["lr"] = rate * min(1.0, 2 * (1 - step / config.steps))
        rows = torch.randint(len(before), (config.batch,))
        logits, routing = model(before[rows])
        loss = nn.functional.cross_entropy(logits, after[rows])
        if arm.endswith("balance loss"):
            loss = loss + own * routing.balance_loss()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return {**judge(model, test), "validation": judge(model, validation)["bits"]}


COLUMNS = (
    Column("bits", "bits per letter", 3),
    Column("load", "largest load, 1 if equal", 2),
    Column("count", "experts per context", 2),
    Column("rate", "learning rate", 4),
    Column("own", "own setting", 3),
)


STUDY = Study(
    name="mixture_of_experts",
    title="Mixtures of experts that spell: 2 of 8 for each letter",
    arms=ARMS,
    trial=trial,
    settings=lambda arm: {"rate": (1e-2, 3e-3, 3e-2), "own": OWN.get(arm, FINER)},
    full=Config(20_000, 8, 400, 384, 3),
    quick=Config(300, 4, 25, 64, 1, quick=True),
    columns=COLUMNS,
    contests=(
        Contest("bits", "bits per letter", False, 3),
        Contest("load", "largest load", False, 2),
    ),
    baselines=BASELINES,
    draw=dots_of(*COLUMNS[:2]),
    higher=False,
)


if __name__ == "__main__":
    main(STUDY, __doc__)
