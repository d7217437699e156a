"""Training and judging."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

import softorder as so
from experiments.data.idx import Images
from experiments.knn.config import Config
from experiments.knn.data import augmented

Loss = Callable[[Tensor, Tensor], Tensor]  #: of images and labels


def train(model: nn.Module, images: Images, config: Config, steps: int, loss_of: Loss) -> None:
    optimiser, schedule = _optimiser(model, config, steps)
    model.train()
    for _ in range(steps):
        loss = loss_of(*_batch(images, config))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


def _batch(images: Images, config: Config) -> tuple[Tensor, Tensor]:
    """Images and labels, drawn at random."""
    size = config.queries + config.templates
    chosen = torch.randperm(len(images.labels), device=images.labels.device)[:size]
    inputs = images.images[chosen]
    return augmented(inputs) if config.augment else inputs, images.labels[chosen]


def agreement(
    body: nn.Module, images: Images, config: Config, loss_of: Loss, batches: int = 16
) -> float:
    """The mean cosine of the gradients that two batches give a network: 1 if the batch does not
    matter, 0 if nothing else does. The network and the random numbers stay as they are."""
    kept = copy.deepcopy(body.state_dict())
    weights = list(body.parameters())
    body.train()
    with torch.random.fork_rng([]):
        rows = []
        for _ in range(batches):
            found = torch.autograd.grad(loss_of(*_batch(images, config)), weights)
            rows.append(torch.cat([part.flatten() for part in found]).double())
    body.load_state_dict(kept)  # batch normalisation has counted
    each = nn.functional.normalize(torch.stack(rows))
    # Σ_{a≠b} cos(a, b) = |Σ_a a/|a||² - batches
    return ((each.sum(0).square().sum() - batches) / (batches * (batches - 1))).item()


def _optimiser(
    model: nn.Module, config: Config, steps: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    rate = config.learning_rate
    if config.optimiser == "one cycle":
        cycle = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=config.weight_decay)
        return cycle, torch.optim.lr_scheduler.OneCycleLR(cycle, rate, total_steps=steps)
    if config.optimiser == "sgd":
        optimiser: torch.optim.Optimizer = torch.optim.SGD(
            model.parameters(), lr=rate, momentum=0.9, weight_decay=config.weight_decay
        )
    else:
        optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    return optimiser, torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)


def neighbours(features: nn.Module, images: Images, k: int) -> float:
    """The accuracy of the k nearest training images."""
    model = so.nn.SoftKNN(features, k).remember(images.images, images.labels)
    return accuracy(model.predict(images.test_images), images)


@torch.no_grad()
def classes(model: nn.Module, images: Images) -> float:
    """The accuracy of the largest logit."""
    model.eval()
    found = [model(part).argmax(-1) for part in images.test_images.split(1000)]
    return accuracy(torch.cat(found), images)


def accuracy(predicted: Tensor, images: Images) -> float:
    return (predicted == images.test_labels).double().mean().item()
