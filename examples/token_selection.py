"""Tokens that matter: k of the 16 patches of an image, chosen by the network itself.

MNIST, cut into patches of 7×7 pixels, as it is and with clutter: then 5 of the 8 patches with the
least ink are full of noise. A transformer layer names the digit. Before it, 6 patches are kept: in
training `so.nn.TokenSelection` weighs all 16 and shows the weights to the attention; in use it
gathers 6, and everything behind it works on 6 tokens. Arms:

    all tokens                  nothing is left out, for comparison
    random                      6 at random, others for every image
    brightest                   the 6 of the largest norm: hard to beat where ink is what counts
    so.nn.TokenSelection        a small network scores each patch; its soft top-k is cooled down,
                                and k falls from 16 to 6, in the first half of the steps
    ... straight-through        the hard choice with the derivative of the soft one, at one
                                temperature; k falls, too

Every arm is tuned alike, by its accuracy on held-out digits, the mean of both: first its learning
rate from the same three, then its temperature, or a finer learning rate, from three values.

    python -m examples.token_selection --quick      # a few seconds, no download
    python -m examples.token_selection              # minutes; writes examples/results
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import Tensor, nn

import softorder as so
from examples.images import Part, digits
from examples.study import FINER, Setting, Study, dots_of, main
from experiments.contest import Contest
from experiments.trials import Column, Figures

WIDTH, HEADS = 32, 4
COOLED = 15  # times colder in the end
NOISY, DARK = 5, 8  # patches
BASELINES = ("all tokens", "random", "brightest")
ARMS = (*BASELINES, "so.nn.TokenSelection", "so.nn.TokenSelection, straight-through")


@dataclass(frozen=True)
class Config:
    training: int
    others: int
    patch: int
    k: int
    steps: int
    batch: int
    seeds: int
    quick: bool = False


class Attention(nn.Module):
    """Before the norm, with a mask that is added to the scores."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.rest = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.into, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide = nn.Sequential(
            nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH)
        )

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        parts = self.into(self.norm(x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(*parts, attn_mask=mask)
        x = x + self.out(mixed.transpose(1, 2).flatten(-2))
        return x + self.wide(self.rest(x))


class Classifier(nn.Module):
    def __init__(self, arm: str, pixels: int, length: int, k: int) -> None:
        super().__init__()
        self.arm, self.k = arm, k
        self.into, self.places = nn.Linear(pixels, WIDTH), nn.Parameter(torch.zeros(length, WIDTH))
        nn.init.normal_(self.places, std=0.3)
        self.select: so.nn.TokenSelection | None = None
        if arm.startswith("so.nn.TokenSelection"):
            scorer = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1))
            hard = arm.endswith("straight-through")
            self.select = so.nn.TokenSelection(WIDTH, k, scorer=scorer, hard=hard)
        self.layer = Attention()
        self.out = nn.Linear(WIDTH, 10)

    def forward(self, patches: Tensor) -> Tensor:
        x, mask, weights = self.into(patches) + self.places, None, None
        if self.select is not None:
            kept = self.select(x)
            x, weights = kept.tokens, kept.weights
            mask = kept.attn_mask() if self.training else None
        elif self.arm != "all tokens":
            ink = torch.rand(x.shape[:2]) if self.arm == "random" else patches.norm(dim=-1)
            best = ink.topk(self.k).indices
            x = x.gather(1, best.unsqueeze(-1).expand(-1, -1, WIDTH))
        x = self.layer(x, mask)
        if weights is None:
            return self.out(x.mean(1))
        return self.out((x * weights.unsqueeze(-1)).sum(1) / self.k)


def cut(images: Tensor, patch: int, clutter: bool) -> Tensor:
    """(count, patches, pixels); the clutter is the same every time."""
    rows = images.unflatten(-1, (-1, patch)).unflatten(-3, (-1, patch))
    patches = rows.transpose(-2, -3).flatten(-2).flatten(1, 2)
    if not clutter:
        return patches
    generator = torch.Generator().manual_seed(0)
    dark = patches.sum(-1).topk(DARK, largest=False).indices
    order = torch.rand(dark.shape, generator=generator).argsort(-1)
    noisy = dark.gather(1, order[:, :NOISY]).unsqueeze(-1).expand(-1, -1, patches.shape[-1])
    return patches.scatter(1, noisy, torch.rand(noisy.shape, generator=generator).sqrt())


@lru_cache
def data(config: Config, clutter: bool) -> tuple[Part, ...]:
    """Patches and classes: to train with, to validate with, to test with."""
    parts = digits(config.training, config.others, config.quick)
    return tuple((cut(x, config.patch, clutter), y) for x, y in parts)


@torch.no_grad()
def judge(model: Classifier, patches: Tensor, classes: Tensor) -> float:
    right = model.eval()(patches).argmax(-1) == classes
    return right.float().mean().item()


def train(
    arm: str, seed: int, setting: Setting, config: Config, clutter: bool
) -> tuple[float, float]:
    """Accuracy in validation and in the test."""
    (patches, y), *others = data(config, clutter)
    torch.manual_seed(seed)
    every, own = patches.shape[1], setting["own"]
    model = Classifier(arm, patches.shape[-1], every, config.k)
    rate = setting["rate"] * (own if model.select is None else 1.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    end = own if arm.endswith("straight-through") else own / COOLED
    cooling = so.schedules.Exponential(own, end, config.steps // 2)
    for step in range(config.steps):
        done = step / config.steps
        if model.select is not None:
            model.select.temperature = cooling(step)
            model.select.k = round(every * (config.k / every) ** min(1.0, 2 * done))
        optimiser.param_groups[0]["lr"] = rate * min(1.0, 2 * (1 - done))
        rows = torch.randint(len(patches), (config.batch,))
        loss = nn.functional.cross_entropy(model(patches[rows]), y[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    validation, test = (judge(model, *part) for part in others)
    return validation, test


def trial(arm: str, seed: int, setting: Setting, config: Config) -> Figures:
    found = [train(arm, seed, setting, config, clutter) for clutter in (False, True)]
    validation, (plain, cluttered) = zip(*found, strict=True)
    return {"plain": plain, "cluttered": cluttered, "validation": sum(validation) / 2}


def settings(arm: str) -> dict[str, tuple[float, ...]]:
    own = FINER
    if arm.startswith("so."):
        own = (1.0, 0.3, 3.0) if arm.endswith("straight-through") else (0.3, 0.1, 1.0)
    return {"rate": (3e-3, 1e-3, 1e-2), "own": own}


COLUMNS = (
    Column("plain", "accuracy, %", 2, 100),
    Column("cluttered", "with clutter, %", 2, 100),
    Column("rate", "learning rate", 4),
    Column("own", "own setting", 2),
)


STUDY = Study(
    name="token_selection",
    title="6 of 16 patches of MNIST, chosen before a transformer",
    arms=ARMS,
    trial=trial,
    settings=settings,
    full=Config(6_000, 2_000, 7, 6, 250, 64, 3),
    quick=Config(1_000, 200, 2, 4, 15, 32, 1, quick=True),
    columns=COLUMNS,
    contests=(
        Contest("plain", "accuracy without clutter", True, 2, 100, " %"),
        Contest("cluttered", "accuracy with clutter", True, 2, 100, " %"),
    ),
    baselines=BASELINES,
    draw=dots_of(*COLUMNS[:2]),
)


if __name__ == "__main__":
    main(STUDY, __doc__)
