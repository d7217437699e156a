"""Every method of top-k, plain kNN and cross-entropy."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

import softorder as so
from experiments.data.idx import Images
from experiments.experiment import Experiment, Setting, Trial
from experiments.knn.config import BASELINES, PRESETS, Config
from experiments.knn.data import load
from experiments.knn.networks import CLASSES, NETWORKS
from experiments.trials import Column, Figures, Trials

COLUMNS = (Column("accuracy", "test accuracy, %", 2, 100),)


def arms(config: Config) -> list[str]:
    served = {row.name for row in so.methods() if row.operator == "log_soft_topk"}
    soft = [
        f"{method}, {loss}"
        for loss in config.losses
        for method in config.methods
        if loss == "share" or method in served
    ]
    return [*BASELINES, *soft]


def trial(arm: str, seed: int, config: Config, setting: Setting) -> Figures:
    """The accuracy of one arm."""
    images = load(config.data, setting, config.training, seed)
    network, features = NETWORKS[config.network]
    body = network(config).to(setting.device)
    if arm == "kNN on pixels":
        return _neighbours(so.nn.SoftKNN(nn.Flatten(), config.k), images)
    if arm in BASELINES:
        head = nn.Linear(features(config), CLASSES).to(setting.device)
        _train(nn.Sequential(body, head), images, config, _cross_entropy)
        if arm == "cross-entropy":
            return {"accuracy": _accuracy(_classes(nn.Sequential(body, head), images), images)}
        return _neighbours(so.nn.SoftKNN(body, config.k), images)
    method, loss = arm.split(", ")
    model = so.nn.SoftKNN(body, config.k, method=method, loss=loss).to(setting.device)
    sizes = (config.queries, config.templates)
    outside = 1 - config.k / config.templates  # what others have when nothing is decided
    softness = min(config.softness / outside, 0.95)
    model.calibrate(*images.images[: sum(sizes)].split(sizes), softness=softness)
    _train(model, images, config, partial(_soft, queries=config.queries))
    return _neighbours(model, images)


def _train(model: nn.Module, images: Images, config: Config, loss_of) -> None:  # type: ignore[no-untyped-def]
    if config.optimiser == "sgd":
        optimiser: torch.optim.Optimizer = torch.optim.SGD(
            model.parameters(),
            lr=config.learning_rate,
            momentum=0.9,
            weight_decay=config.weight_decay,
        )
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, config.steps)
    for _ in range(config.steps):
        batch = torch.randperm(len(images.labels), device=images.labels.device)[
            : config.queries + config.templates
        ]
        loss = loss_of(model, images.images[batch], images.labels[batch])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


def _cross_entropy(model: nn.Module, images: Tensor, labels: Tensor) -> Tensor:
    return nn.functional.cross_entropy(model(images), labels)


def _soft(model: so.nn.SoftKNN, images: Tensor, labels: Tensor, queries: int) -> Tensor:
    (q, t), (q_labels, t_labels) = ((x[:queries], x[queries:]) for x in (images, labels))
    return model(q, q_labels, t, t_labels)


@torch.no_grad()
def _classes(model: nn.Module, images: Images) -> Tensor:
    model.eval()
    return torch.cat([model(part).argmax(-1) for part in images.test_images.split(1000)])


def _neighbours(model: so.nn.SoftKNN, images: Images) -> Figures:
    model.remember(images.images, images.labels)
    return {"accuracy": _accuracy(model.predict(images.test_images), images)}


def _accuracy(predicted: Tensor, images: Images) -> float:
    return (predicted == images.test_labels).double().mean().item()


def session(config: Config, setting: Setting, _: Trials) -> Trial:
    return partial(trial, config=config, setting=setting)


def needs(config: Config, _: str) -> tuple[str, ...]:
    return () if config.data == "digits" else (config.data,)


EXPERIMENT = Experiment(
    name="knn",
    title="Nearest neighbours in a learned space",
    presets=PRESETS,
    columns=COLUMNS,
    arms=arms,
    session=session,
    needs=needs,
)
