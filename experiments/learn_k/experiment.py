"""Pay λ for every pixel, and learn how many are worth it; beside it, networks with a fixed k."""

from __future__ import annotations

import statistics
from pathlib import Path

import torch

import softorder as so
from experiments.experiment import Experiment, Setting, Trial
from experiments.feature_selection.training import judge, load, train
from experiments.learn_k.config import PRESETS, Config
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("penalised", "test loss + λ k", 4),
    Column("loss", "test loss", 4),
    Column("k", "k at the end", 1),
    Column("seconds", "seconds", 0),
)


def arms(config: Config) -> list[str]:
    fixed = [f"fixed k = {k}" for k in config.fixed]
    return [*fixed, *(f"learned, from k = {k}" for k in config.starts)]


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        images = load("mnist", setting).part(config.training, config.test, seed)
        images = images.to(setting.device)
        torch.manual_seed(seed)
        pixels = images.images[0].numel()
        start = int(arm.split(" = ")[1])
        if arm.startswith("fixed"):
            gate = so.nn.KHotGate(pixels, start, design="pivotal").to(setting.device)
            network, curve = train(images, gate, config)
        else:
            gate = so.nn.KHotGate(pixels, None, start=start, design="pivotal")
            gate = gate.to(setting.device)
            network, curve = train(images, gate, config, lambda: config.price * gate.size())
        k = gate.size().item()
        loss = judge(network, gate, images)["loss"]
        return {"penalised": loss + config.price * k, "loss": loss, "k": k, "curve": curve}

    return trial


def draw(trials: Trials, path: Path) -> None:
    """Figure 5: the penalised loss over k."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for label, style in (("fixed", "o-"), ("learned", "*")):
        chosen = [arm for arm in trials.arms if arm.startswith(label)]
        ks, losses = (
            [statistics.mean(trials.values(arm, key)) for arm in chosen]
            for key in ("k", "penalised")
        )
        axes.plot(ks, losses, style, label=label, ms=12 if label == "learned" else 5)
    axes.set(xlabel="k", ylabel="test loss + λ k", title=trials.title)
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


EXPERIMENT = Experiment(
    name="learn_k",
    title="Learning k: MNIST at a price for every pixel",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    needs=lambda config, arm: ("mnist",),
    draw=draw,
)
