"""CIFAR."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from experiments.bfloat16 import Bfloat16
from experiments.data import cifar10, cifar100
from experiments.experiment import Setting
from experiments.topk_classification.compact import compact
from experiments.topk_classification.resnet import resnet18
from experiments.topk_classification.splits import Data, held_out, whole

PICTURES = {"cifar10": cifar10.load, "cifar100": cifar100.load}
_FEW = 5_000  # images to learn from, if it has to be quick


def pictures(name: str, quick: bool, setting: Setting) -> Data:
    """With mean 0 and variance 1; a tenth of the training images is for validation.

    As the papers train, ResNet18 for 200 epochs in batches of 100; quick, a smaller
    network, for a few epochs on a part of the images.
    """
    images = PICTURES[name](setting.data, setting.fetch)
    axes = (0, 2, 3)
    mean, spread = (f(images.images, axes, keepdim=True) for f in (torch.mean, torch.std))
    inputs, test = ((x - mean) / spread for x in (images.images, images.test_images))
    train, validation = held_out(inputs, images.labels, 0.1)
    if quick:
        train = train.part(min(1.0, _FEW / len(train)))
    splits = (train, validation, whole(test, images.test_labels))
    classes = 1 + int(images.labels.max())
    model = partial(small, classes) if quick else partial(resnet18, classes)
    epochs = 2 if quick else 200
    rate = 1e-2 if quick else 1e-3
    return Data(name, *splits, classes, model, epochs=epochs, batch=100, rate=rate)


def small(classes: int, width: int = 16) -> nn.Module:
    return nn.Sequential(Bfloat16(compact(width)), nn.Linear(4 * width, classes))
