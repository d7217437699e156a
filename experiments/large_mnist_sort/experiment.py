"""Learn to sort images of numbers, told the right order only."""

from __future__ import annotations

from functools import lru_cache

import torch

from experiments.data import idx
from experiments.experiment import Experiment, Setting, Trial
from experiments.large_mnist_sort import pictures
from experiments.large_mnist_sort.config import PRESETS, Config, varied
from experiments.large_mnist_sort.training import Run
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    pictures.WHOLE,
    Column("places", "places right, %", 1, 100),
    Column("temperature", "temperature at the end", 3),
    Column("seconds", "seconds", 0),
)


def arms(config: Config) -> list[str]:
    return [f"n = {n}, {name}" for n in config.sizes for name in config.variants or config.methods]


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        size, name = arm.removeprefix("n = ").split(", ", 1)
        if config.variants:
            method, settings = config.methods[0], varied(config, name)
        else:
            method, settings = name, config
        torch.manual_seed(seed)  # the same network and lists for every method
        return Run(settings, int(size), method, _load(setting)).figures()

    return trial


@lru_cache(maxsize=1)
def _load(setting: Setting) -> idx.Images:
    return idx.load("mnist", setting.data, setting.fetch).to(setting.device)


EXPERIMENT = Experiment(
    name="large_mnist_sort",
    title="Sorting numbers of four MNIST digits",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    needs=lambda config, arm: ("mnist",),
    draw=pictures.draw,
)
