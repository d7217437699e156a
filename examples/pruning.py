"""Networks with few weights: masks that are learned with them, against pruning by magnitude.

A network of three layers, 10,000 digits of MNIST. A share of the weights of every layer is kept,
or k of every group, and all arms have the same number of steps in all:

    dense                       all weights, for comparison
    magnitude, once             some of the steps dense; then the small ones are cut and the rest
                                is trained on
    magnitude, gradual          cut a little after every step, from a tenth of the way to its end,
                                say seven tenths (Zhu & Gupta 2017)
    so.nn.TopKMask              W ⊙ so.soft_topk(|W|, k), cooled down, with a k that falls until
                                seven tenths of the way: what is outside may come back
    ... straight-through        the hard mask with the derivative of the soft one

Every arm is tuned alike, by its accuracy on held-out digits, the mean of all four shares: first its
learning rate from the same three, then when weights are cut (magnitude), the temperature (masks),
or a finer learning rate (dense), from three values.

    python -m examples.pruning --quick      # a second or two, no download
    python -m examples.pruning              # minutes; writes examples/results
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

import softorder as so
from examples.images import Part, digits
from examples.study import FINER, Setting, Study, curves_of, main
from experiments.contest import Contest
from experiments.trials import Column, Figures, Trials

COOLED = 5  # times colder in the end; temperatures are in units of the mean of |W|
BASELINES = ("dense", "magnitude, once", "magnitude, gradual")
ARMS = (*BASELINES, "so.nn.TopKMask", "so.nn.TopKMask, straight-through")
KEPT = (0.1, 0.05, 0.02)  # shares of the weights
GROUP = (1, 16)  # or one of every 16


@dataclass(frozen=True)
class Config:
    training: int
    others: int
    hidden: int
    steps: int
    batch: int
    seeds: int
    quick: bool = False


class Cut(nn.Module):
    """A parametrisation by a mask that does not change by itself."""

    mask: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones_like(weight))

    def forward(self, weight: Tensor) -> Tensor:
        return weight * self.mask

    def right_inverse(self, weight: Tensor) -> Tensor:
        return weight

    @torch.no_grad()
    def prune(self, weight: Tensor, share: float, group: int | None) -> None:
        """Cuts the smallest of those that are left."""
        size = (weight.abs() * self.mask).reshape((-1,) if group is None else (-1, group))
        k = max(1, round(share * size.shape[-1]))
        least = size.topk(k, -1).values[..., -1:]
        self.mask.copy_((size >= least).view_as(weight))


def network(arm: str, kept: float | tuple[int, int], inputs: int, hidden: int) -> nn.Sequential:
    sizes = [(inputs, hidden), (hidden, hidden), (hidden, 10)]
    layers = [nn.Linear(*size) for size in sizes]
    for layer in layers:
        if arm.startswith("so.nn.TopKMask"):
            hard = arm.endswith("straight-through")
            if isinstance(kept, tuple):
                mask: nn.Module = so.nn.TopKMask(kept[0], group=kept[1], hard=hard)
            else:
                mask = so.nn.TopKMask(keep=kept, hard=hard)
        elif arm == "dense":
            continue
        else:
            mask = Cut(layer.weight)
        parametrize.register_parametrization(layer, "weight", mask)
    return nn.Sequential(layers[0], nn.ReLU(), layers[1], nn.ReLU(), layers[2])


def adjust(
    arm: str, model: nn.Sequential, kept: float | tuple[int, int], own: float, done: float
) -> None:
    """Temperatures and masks, when this part of the training is done."""
    if arm == "dense":
        return
    group = kept[1] if isinstance(kept, tuple) else None
    share = kept[0] / kept[1] if isinstance(kept, tuple) else kept
    last = own if arm == "magnitude, gradual" else 0.7
    left = min(1.0, max(0.0, 1 - (done - 0.1) / (last - 0.1))) ** 3  # of the way to the share
    gradual = share + (1 - share) * left
    for layer in model[::2]:
        mask, weight = layer.parametrizations.weight[0], layer.parametrizations.weight.original
        if isinstance(mask, so.nn.TopKMask):
            mask.temperature = own * COOLED ** -min(1.0, 2 * done)
            if group is None:
                mask.keep = min(gradual, 1 - 1e-6)
            else:
                mask.k = round(gradual * group)
        elif arm == "magnitude, gradual":
            mask.prune(weight, gradual, group)
        elif done >= own and bool(mask.mask.all()):
            mask.prune(weight, share, group)


@torch.no_grad()
def accuracy(model: nn.Module, part: Part) -> float:
    model.eval()
    right = model(part[0].flatten(1)).argmax(-1) == part[1]
    return right.float().mean().item()


def train(
    arm: str, kept: float | tuple[int, int], seed: int, setting: Setting, config: Config
) -> tuple[float, float]:
    """Accuracy in validation and in the test."""
    (x, y), *others = digits(config.training, config.others, config.quick)
    torch.manual_seed(seed)
    model = network(arm, kept, x[0].numel(), config.hidden)
    own = setting["own"]
    rate = setting["rate"] * (own if arm == "dense" else 1.0)
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    for step in range(config.steps):
        adjust(arm, model, kept, own, step / config.steps)
        optimiser.param_groups[0]["lr"] = rate * min(1.0, 2 * (1 - step / config.steps))
        rows = torch.randint(len(x), (config.batch,))
        loss = nn.functional.cross_entropy(model(x[rows].flatten(1)), y[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    first, second = (accuracy(model, part) for part in others)
    return first, second


def trial(arm: str, seed: int, setting: Setting, config: Config) -> Figures:
    if arm == "dense":
        validation, test = train(arm, 1.0, seed, setting, config)
        return {"dense": test, "validation": validation}
    if config.quick:
        validation, test = train(arm, KEPT[0], seed, setting, config)
        return {f"kept_{KEPT[0]:g}": test, "validation": validation, "shares": [], "curve": []}
    found = [train(arm, kept, seed, setting, config) for kept in (*KEPT, GROUP)]
    tests = [test for _, test in found]
    return {
        **{f"kept_{kept:g}": test for kept, test in zip(KEPT, tests, strict=False)},
        "group": tests[-1],
        "shares": [100 * kept for kept in KEPT],
        "curve": tests[:-1],
        "validation": statistics.mean(validation for validation, _ in found),
    }


COLUMNS = (
    Column("dense", "all weights", 2, 100),
    *(Column(f"kept_{kept:g}", f"{kept:.0%} of them", 2, 100) for kept in KEPT),
    Column("group", f"{GROUP[0]} of every {GROUP[1]}", 2, 100),
    Column("rate", "learning rate", 4),
    Column("own", "own setting", 2),
)


def settings(arm: str) -> dict[str, tuple[float, ...]]:
    own = {
        "dense": FINER,
        "magnitude, once": (0.5, 0.3, 0.7),
        "magnitude, gradual": (0.7, 0.5, 0.9),
    }
    return {"rate": (3e-3, 1e-3, 1e-2), "own": own.get(arm, (0.1, 0.03, 0.3))}


def finish(axes: Any, trials: Trials) -> None:
    dense = trials.values("dense", "dense")
    axes.axhline(100 * statistics.mean(dense), color="black", ls=":", lw=1, label="dense")
    axes.set(xscale="log", xlabel="weights that are kept, %", ylabel="test accuracy, %")
    ticks = [100 * kept for kept in KEPT]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


STUDY = Study(
    name="pruning",
    title="Pruned networks for MNIST, the same steps for all",
    arms=ARMS,
    trial=trial,
    settings=settings,
    full=Config(10_000, 5_000, 64, 300, 64, 3),
    quick=Config(1_000, 300, 32, 60, 64, 1, quick=True),
    columns=COLUMNS,
    contests=(
        Contest("kept_0.1", "accuracy with 90 % of the weights gone", True, 2, 100, " %"),
        Contest("kept_0.02", "accuracy with 98 % of the weights gone", True, 2, 100, " %"),
    ),
    baselines=BASELINES,
    draw=curves_of("curve", "shares", 100, finish),
)


if __name__ == "__main__":
    main(STUDY, __doc__)
