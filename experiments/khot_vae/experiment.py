"""Train an autoencoder with every method, and judge it by its loss on test images."""

from __future__ import annotations

import torch

from experiments.data.sources import SOURCES
from experiments.experiment import Experiment, Setting, Trial
from experiments.feature_selection.training import load
from experiments.khot_vae.config import PRESETS, Config
from experiments.khot_vae.model import Autoencoder
from experiments.trials import Column, Figures, Trials

COLUMNS = (Column("loss", "test loss", 2), Column("seconds", "seconds", 0))


def cells(config: Config) -> dict[str, tuple]:  # type: ignore[type-arg]
    """Code, data set and method of every arm."""
    return {
        f"{code}, {SOURCES[name].title}, {method}": (code, name, method)
        for code in config.codes
        for name in code.data
        for method in code.methods
    }


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    def trial(arm: str, seed: int) -> Figures:
        code, name, method = cells(config)[arm]
        images = load(name, setting).part(config.training, config.test, seed).to(setting.device)
        pixels = images.images.flatten(1)
        torch.manual_seed(seed)
        model = Autoencoder(pixels.shape[1], config.hidden, code, method).to(setting.device)
        optimiser = torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)
        for _ in range(config.epochs):
            for batch in torch.randperm(len(pixels)).to(setting.device).split(config.batch):
                optimiser.zero_grad()
                model(pixels[batch]).mean().backward()
                optimiser.step()
        # The codes of test images are drawn as well: the model stays in training mode.
        with torch.no_grad():
            parts = images.test_images.flatten(1).split(500)
            return {"loss": torch.cat([model(part) for part in parts]).mean().item()}

    return trial


EXPERIMENT = Experiment(
    name="khot_vae",
    title="Variational autoencoders with k-hot codes",
    presets=PRESETS,
    columns=COLUMNS,
    arms=lambda config: list(cells(config)),
    session=session,
    needs=lambda config, arm: (cells(config)[arm][1],),
)
