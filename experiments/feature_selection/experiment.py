"""Learn a network and, with it, which pixels it is shown."""

from __future__ import annotations

import torch

import softorder as so
from experiments.data.sources import SOURCES
from experiments.experiment import Experiment, Learning, Setting, Trial
from experiments.feature_selection.config import PRESETS, WHOLE, Config
from experiments.feature_selection.training import judge, load, train
from experiments.khot_methods import options
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("loss", "test loss", 4),
    Column("least", "least test loss of an epoch", 4),
    Column("best_loss", "test loss, k most probable pixels", 4),
    Column("accuracy", "test accuracy, %", 2, 100),
    Column("seconds", "seconds", 0),
)


def arms(config: Config) -> list[str]:
    return [f"{SOURCES[d].title}, {m}" for d in config.data for m in config.methods]


def needs(config: Config, arm: str) -> list[str]:
    return [name for name in config.data if arm.startswith(f"{SOURCES[name].title}, ")]


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        (name,) = needs(config, arm)
        images = load(name, setting).part(config.training, config.test, seed).to(setting.device)
        torch.manual_seed(seed)  # the same network for every arm
        pixels = images.images[0].numel()
        gate = _gate(arm.split(", ", 1)[1], pixels, config.k).to(setting.device)
        network, curve = train(images, gate, config)
        return {**judge(network, gate, images), "least": min(curve), "curve": curve}

    return trial


def _gate(method: str, pixels: int, k: int) -> so.nn.KHotGate:
    """A gate that lets k pixels pass, or every one."""
    if method == WHOLE:
        return so.nn.KHotGate(pixels, pixels)
    return so.nn.KHotGate(pixels, k, **options(method))


EXPERIMENT = Experiment(
    name="feature_selection",
    title="Feature selection: 50 of 784 pixels",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    learning=Learning("curve", "curve_epochs", "test loss", "epochs"),
    needs=needs,
)
