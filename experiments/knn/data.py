"""Handwritten digits, the small ones of scikit-learn or MNIST; and CIFAR-10."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from experiments.data import cifar10, idx
from experiments.data.idx import Images, shuffled
from experiments.experiment import Setting

_DIGITS_TO_LEARN = 1_000  #: of 1,797; the others are always those of the test
_TUNING = 1_000_000  #: a seed that no trial has


def load(data: str, setting: Setting, training: int, seed: int) -> Images:
    """`training` items, drawn anew for every seed; the test items are always the same."""
    return _all(data, setting).part(training, None, seed)


def for_tuning(data: str, setting: Setting, training: int) -> Images:
    """Items to learn from and others to judge by, none of them of the test."""
    images = _all(data, setting)
    order = shuffled(len(images.labels), _TUNING)
    held = min(5_000, len(order) // 2)
    judge, learn = order[:held], order[held:][:training]
    return Images(
        images.images[learn], images.labels[learn], images.images[judge], images.labels[judge]
    )


@lru_cache(maxsize=1)
def _all(data: str, setting: Setting) -> Images:
    if data == "digits":
        return _digits().to(setting.device)
    if data == "cifar10":
        return _centred(cifar10.load(setting.data, setting.fetch)).to(setting.device)
    return idx.load(data, setting.data, setting.fetch).to(setting.device)


def _digits() -> Images:
    from sklearn.datasets import load_digits

    table = load_digits()
    images = torch.from_numpy(table.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(table.target).long()
    order = shuffled(len(labels), seed=0)
    train, test = order[:_DIGITS_TO_LEARN], order[_DIGITS_TO_LEARN:]
    return Images(images[train], labels[train], images[test], labels[test])


def _centred(found: Images) -> Images:
    """Every colour with mean 0 and variance 1 over the training images."""
    axes = (0, 2, 3)
    mean, spread = (f(found.images, axes, keepdim=True) for f in (torch.mean, torch.std))
    images, test = ((x - mean) / spread for x in (found.images, found.test_images))
    return Images(images, found.labels, test, found.test_labels)


def augmented(images: Tensor, most: int = 4) -> Tensor:
    """Each image moved by up to `most` pixels, and every second one mirrored, at random."""
    count, _, height, width = images.shape
    device = images.device
    wide = torch.nn.functional.pad(images, (most,) * 4, mode="reflect")
    shift = torch.randint(2 * most + 1, (2, count, 1), device=device)
    rows = shift[0] + torch.arange(height, device=device)
    columns = shift[1] + torch.arange(width, device=device)
    mirrored = torch.rand(count, 1, device=device) < 0.5
    columns = torch.where(mirrored, columns.flip(1), columns)
    each = torch.arange(count, device=device).view(-1, 1, 1)
    return wide.permute(0, 2, 3, 1)[each, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2)
