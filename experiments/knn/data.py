"""Handwritten digits, the small ones of scikit-learn or MNIST; and CIFAR-10."""

from __future__ import annotations

import torch

from experiments.data import cifar10, idx
from experiments.data.idx import Images, shuffled
from experiments.experiment import Setting


def load(data: str, setting: Setting, training: int, seed: int) -> Images:
    """`training` items, drawn anew for every seed; the test items are those that they are not,
    of digits, and always the same, of the others."""
    if data == "digits":
        return _digits(training, seed).to(setting.device)
    if data == "cifar10":
        images = cifar10.load(setting.data, setting.fetch)
    else:
        images = idx.load(data, setting.data, setting.fetch)
    return images.part(training, None, seed).to(setting.device)


def _digits(training: int, seed: int) -> Images:
    from sklearn.datasets import load_digits

    table = load_digits()
    images = torch.from_numpy(table.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(table.target).long()
    order = shuffled(len(labels), seed)
    train, test = order[:training], order[training:]
    return Images(images[train], labels[train], images[test], labels[test])
