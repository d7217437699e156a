"""Every method of top-k, plain kNN, and features that were learned without neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from experiments.data.idx import Images
from experiments.experiment import Experiment, Setting, Trial
from experiments.knn import baselines, config, data, pictures, training
from experiments.knn.config import PRESETS, Config
from experiments.knn.methods import Arm, every, middle
from experiments.knn.networks import CLASSES, build
from experiments.trials import Column, Figures, Trials

COLUMNS = (
    Column("accuracy", "test accuracy, %", 2, 100),
    Column("temperature", "τ at the start", 4),
    Column("end", "τ at the end", 4),
    Column("agreement", "cosine of two batches' gradients at the start", 3),
)
_UNTUNED = (config.PIXELS, config.PCA, config.AUTO_ENCODER)
_TUNING = 1_000_000  #: a seed that no trial has


class Fit(NamedTuple):
    """What was trained: to features, to classes (by cross-entropy alone), and temperatures."""

    features: nn.Module
    accuracy: float
    figures: dict[str, float]


def arms(settings: Config) -> list[str]:
    return list(settings.variants) or [*settings.baselines, *map(str, every(settings))]


@dataclass
class Session:
    """All seeds of an arm have the same factor of the temperature; an earlier run may have it."""

    config: Config
    setting: Setting
    done: Trials
    compared: bool = False  #: the gradients of several batches, before training

    def __post_init__(self) -> None:
        self._soft = {str(arm): arm for arm in every(self.config)}
        self._factors: dict[str, float] = {}
        self._pretrained: tuple[int, Fit] | None = None

    def trial(self, name: str, seed: int) -> Figures:
        factor = self._factor(name)
        torch.manual_seed(seed)
        images = data.load(self.config.data, self.setting, self.config.training, seed)
        if name in (config.CROSS_ENTROPY, config.ON_CROSS_ENTROPY):
            fit = self._cross_entropy(name, seed, images, factor)
        else:
            fit = self._fit(name, images, self.config.steps, factor)
        figures: dict[str, float | list[float]] = {"accuracy": fit.accuracy, **fit.figures}
        if name not in _UNTUNED:
            figures["factor"] = factor
        if seed == 0 and name in self.config.maps:
            figures |= pictures.map_of(fit.features, images)
        return figures

    def _cross_entropy(self, name: str, seed: int, images: Images, factor: float) -> Fit:
        """One network for both arms: as such, and its features with neighbours."""
        if self._pretrained is None or self._pretrained[0] != seed:
            fit = self._fit(config.CROSS_ENTROPY, images, self.config.steps, factor)
            self._pretrained = seed, fit
        fit = self._pretrained[1]
        if name == config.CROSS_ENTROPY:
            return fit
        return fit._replace(accuracy=self._near(fit.features, images))

    def _fit(self, name: str, images: Images, steps: int, factor: float) -> Fit:
        """Train, and judge by the images of the test."""
        if name == config.PIXELS:
            return self._judged(nn.Flatten(), images)
        if name == config.PCA:
            return self._judged(baselines.pca(images.images), images)
        body, features = build(self.config, self.setting.device)
        if name == config.AUTO_ENCODER:
            pixels = images.images[0].numel()
            coder = baselines.AutoEncoder(body, features, pixels).to(self.setting.device)
            training.train(coder, images, self.config, steps, lambda x, _: coder.loss(x))
            return self._judged(body, images)
        if name == config.CROSS_ENTROPY:
            model = nn.Sequential(body, nn.Linear(features, CLASSES).to(self.setting.device))

            def loss(x: Tensor, y: Tensor) -> Tensor:
                return nn.functional.cross_entropy(model(x) / factor, y)

            figures = {"temperature": factor, **self._agreement(body, images, loss)}
            training.train(model, images, self.config, steps, loss)
            return Fit(body, training.classes(model, images), figures)
        return self._neighbours(self._soft[name], body, images, steps, factor)

    def _neighbours(
        self, arm: Arm, body: nn.Module, images: Images, steps: int, factor: float
    ) -> Fit:
        """Through a soft top-k."""
        model = arm.model(body, self.config.k, self.config.distance).to(self.setting.device)
        queries, templates = self.config.queries, self.config.templates

        def parts(x: Tensor) -> tuple[Tensor, Tensor | None]:
            return x[:queries], x[queries : queries + templates] if templates else None

        start = factor * middle(arm, model, *parts(images.images), self.config.softness)
        model.temperature = start

        def loss(x: Tensor, y: Tensor) -> Tensor:
            (x, others), (y, classes) = parts(x), parts(y)
            return model(x, y, others, classes)

        figures = {"temperature": start, **self._agreement(body, images, loss)}
        training.train(model, images, self.config, steps, loss)
        if arm.learned:
            figures["end"] = torch.as_tensor(model.temperature).item()
        return self._judged(body, images)._replace(figures=figures)

    def _agreement(self, body: nn.Module, images: Images, loss: training.Loss) -> dict[str, float]:
        if not self.compared:
            return {}
        return {"agreement": training.agreement(body, images, self.config, loss)}

    def _judged(self, features: nn.Module, images: Images) -> Fit:
        return Fit(features, self._near(features, images), {})

    def _near(self, features: nn.Module, images: Images) -> float:
        return training.neighbours(features, images, self.config.k)

    def _factor(self, name: str) -> float:
        """That with the best accuracy on items that are neither learned from nor tested."""
        if name in _UNTUNED:
            return 1.0
        name = config.CROSS_ENTROPY if name == config.ON_CROSS_ENTROPY else name
        if name in self._soft and self._soft[name].units is not None:
            return self._soft[name].units or 0.0
        if len(self.config.factors) == 1:
            return self.config.factors[0]
        known = self.done.values(name, "factor")
        if known:
            self._factors.setdefault(name, known[0])
        if name not in self._factors:
            some = data.for_tuning(self.config.data, self.setting, self.config.training)
            scores = {factor: self._tried(name, some, factor) for factor in self.config.factors}
            self._factors[name] = max(scores, key=scores.__getitem__)
        return self._factors[name]

    def _tried(self, name: str, images: Images, factor: float) -> float:
        torch.manual_seed(_TUNING)
        return self._fit(name, images, self.config.tuning_steps, factor).accuracy


def session(settings: Config, setting: Setting, done: Trials) -> Trial:
    if not settings.variants:
        return Session(settings, setting, done).trial

    def trial(name: str, seed: int) -> Figures:
        one = config.varied(settings, name)
        return Session(one, setting, done, compared=True).trial(arms(one)[0], seed)

    return trial


def needs(settings: Config, _: str) -> tuple[str, ...]:
    return () if settings.data == "digits" else (settings.data,)


def shared(arm: str, seed: int) -> object:
    """The factor of an arm; both arms of cross-entropy have one network."""
    return config.CROSS_ENTROPY if arm == config.ON_CROSS_ENTROPY else arm


EXPERIMENT = Experiment(
    name="knn",
    title="Nearest neighbours in a learned space",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    needs=needs,
    shared=shared,
    draw=pictures.draw,
)
