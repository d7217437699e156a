"""Minimise E‖x - c‖² over the logits of k-hot draws x, with every gradient estimator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

import softorder as so
from experiments.experiment import Experiment, Setting, Trial
from experiments.khot_methods import options
from experiments.polynomial.config import PRESETS, Config
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("excess", "excess over the optimum", 4),
    Column("found", "problems within 1% of the start's excess, %", 1, 100),
    Column("seconds", "seconds", 0),
)


def method(arm: str) -> tuple[Callable[..., Tensor], str]:
    """Estimator and design."""
    if arm == "score function":
        return so.estimators.score_function, "conditional_poisson"
    chosen = options(arm)
    estimator = chosen["estimator"]
    named = isinstance(estimator, str)
    return so.estimators.find(estimator) if named else estimator, chosen["design"]


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        estimator, design = method(arm)
        centre = target(config).to(setting.device)
        logits = torch.zeros(config.problems, config.n, device=setting.device, requires_grad=True)
        optimiser = torch.optim.Adam([logits], lr=config.learning_rate)
        curve = []
        for step in range(config.steps + 1):
            law = so.distributions.KHot(config.k, logits=logits, design=design)
            if step % config.every == 0:
                curve.append(excess(logits.detach(), config, design, centre))
            losses = estimator(law, lambda x: (x - centre).square().sum(-1), (config.samples,))
            optimiser.zero_grad()
            losses.mean(0).sum().backward()
            optimiser.step()
        last, first = curve[-1], curve[0].mean()
        return {
            "excess": last.mean().item(),
            "found": (last < 0.01 * first).double().mean().item(),
            "curve": [point.mean().item() for point in curve],
        }

    return trial


def target(config: Config) -> Tensor:
    """c."""
    centre = torch.full((config.n,), 1 - config.near)
    centre[: config.k] = config.near
    return centre


def excess(logits: Tensor, config: Config, design: str, centre: Tensor) -> Tensor:
    """E‖x - c‖² above its least value, for each problem. As x² = x it is Σ E[x](1 - 2c) + Σ c²;
    a design that does not know its E[x] draws."""
    law = so.distributions.KHot(config.k, logits=logits, design=design)
    mean = law.sample((1_024,)).mean(0) if design == "gumbel_topk" else law.mean
    gains = 1 - 2 * centre
    least = gains.sort().values[: config.k].sum()
    return mean @ gains - least


def draw(trials: Trials, path: Path) -> None:
    """Figure 9: the excess over the steps, a line per seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for colour, arm in enumerate(trials.arms):
        for i, curve in enumerate(trials.values(arm, "curve")):
            steps = [trials.config["every"] * j for j in range(len(curve))]
            label = arm if i == 0 else None
            axes.plot(steps, curve, color=f"C{colour}", label=label, alpha=0.7)
    axes.set(
        xlabel="step", ylabel="E‖x - c‖² above the optimum", title=trials.title, ylim=(0, None)
    )
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


EXPERIMENT = Experiment(
    name="polynomial",
    title="Polynomial programming: k-hot draws near a point",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: config.arms,
    session=session,
    draw=draw,
)
