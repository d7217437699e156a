"""A network behind a gate, trained together."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor, nn

import softorder as so
from experiments.data import idx
from experiments.experiment import Setting
from experiments.feature_selection.config import Training
from experiments.trials import Figures


@lru_cache(maxsize=2)
def load(name: str, setting: Setting) -> idx.Images:
    return idx.load(name, setting.data, setting.fetch)


def dense(*sizes: int) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def train(
    images: idx.Images,
    gate: so.nn.KHotGate,
    config: Training,
    penalty: Callable[[], Tensor | float] = lambda: 0.0,
) -> tuple[nn.Module, list[float]]:
    """Cross-entropy, plus the penalty, over the network and the gate.

    Returns the network, and its test loss after every epoch, with choices drawn as in training.
    """
    pixels, labels = images.images.flatten(1), images.labels
    network = dense(pixels.shape[1], *config.hidden, 10).to(pixels.device)
    groups = [
        {"params": network.parameters()},
        {"params": gate.parameters(), "lr": config.gate_rate},
    ]
    optimiser = torch.optim.Adam(groups, lr=config.learning_rate, fused=True)
    curve = []
    for _ in range(config.epochs):
        for batch in torch.randperm(len(pixels)).to(pixels.device).split(config.batch):
            scores = network(gate(pixels[batch]))
            loss = nn.functional.cross_entropy(scores, labels[batch]) + penalty()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        with torch.random.fork_rng():  # a look at the test images changes nothing
            curve.append(judge(network, gate, images)["loss"])
    return network, curve


@torch.no_grad()
def judge(network: nn.Module, gate: so.nn.KHotGate, images: idx.Images) -> Figures:
    """The loss with choices drawn as in training, and with the one most probable choice."""
    pixels, labels = images.test_images.flatten(1), images.test_labels
    cross_entropy = nn.functional.cross_entropy
    drawn = network(gate.train()(pixels))
    best = network(gate.eval()(pixels))
    gate.train()
    return {
        "loss": cross_entropy(drawn, labels).item(),
        "best_loss": cross_entropy(best, labels).item(),
        "accuracy": (best.argmax(-1) == labels).double().mean().item(),
    }
