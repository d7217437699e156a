"""Learn to sort images of numbers, told the right order only."""

from __future__ import annotations

from functools import lru_cache

import torch

from experiments.data import idx
from experiments.experiment import Experiment, Setting, Trial
from experiments.large_mnist_sort.config import PRESETS, Config
from experiments.large_mnist_sort.model import Scorer, criterion, hits
from experiments.large_mnist_sort.numbers import draw
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("whole", "whole order right, %", 1, 100),
    Column("places", "places right, %", 1, 100),
    Column("temperature", "temperature at the end", 3),
    Column("seconds", "seconds", 0),
)


def arms(config: Config) -> list[str]:
    return [f"n = {n}, {method}" for n in config.sizes for method in config.methods]


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        size, method = arm.removeprefix("n = ").split(", ")
        images = _load(setting)
        shape = (config.images // int(size), int(size))
        torch.manual_seed(seed)  # the same network and lists for every method
        height, width = images.images.shape[-2:]
        model = Scorer(config, height, width).to(setting.device)
        loss_of = criterion(method, config.temperature).to(setting.device)
        parameters = [*model.parameters(), *loss_of.parameters()]
        optimiser = torch.optim.Adam(parameters, lr=config.learning_rate)
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, config.learning_rate, total_steps=config.steps
        )
        for _ in range(config.steps):
            lists, target = draw(images.images, images.labels, shape, config.digits, config.shrink)
            loss = loss_of(model(lists), target)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            cycle.step()
        return {
            **_judge(model, images, config, int(size)),
            "temperature": loss_of.temperature.item(),
        }

    return trial


@torch.no_grad()
def _judge(model: Scorer, images: idx.Images, config: Config, size: int) -> Figures:
    """On lists of test digits."""
    whole, places = [], []
    for start in range(0, config.test, 100):
        shape = (min(100, config.test - start), size)
        lists, target = draw(
            images.test_images, images.test_labels, shape, config.digits, config.shrink
        )
        for kept, found in zip((whole, places), hits(model(lists), target), strict=True):
            kept.append(found)
    return {"whole": torch.cat(whole).mean().item(), "places": torch.cat(places).mean().item()}


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
)
