"""MNIST and Fashion-MNIST: the IDX format."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.data.sources import SOURCES, locate
from experiments.data.unpacking import content


@dataclass(frozen=True)
class Images:
    """Images (N, channels, height, width) with values in [0, 1], and labels."""

    images: Tensor
    labels: Tensor
    test_images: Tensor
    test_labels: Tensor

    def to(self, device: str) -> Images:
        return Images(*(x.to(device) for x in vars(self).values()))

    def part(self, training: int | None, test: int | None, seed: int) -> Images:
        """So many training images, drawn anew for every seed, and the first test images."""
        chosen = shuffled(len(self.labels), seed)[:training]
        return Images(
            self.images[chosen],
            self.labels[chosen],
            self.test_images[:test],
            self.test_labels[:test],
        )


def load(name: str, folder: Path | None = None, fetch: bool = False) -> Images:
    """ "mnist" or "fashion"."""
    found = locate(name, folder, fetch)
    images, labels, test_images, test_labels = map(read, SOURCES[name].paths(found))
    return Images(
        images.float().unsqueeze(1) / 255,
        labels.long(),
        test_images.float().unsqueeze(1) / 255,
        test_labels.long(),
    )


def read(path: Path) -> Tensor:
    """The IDX format: two zero bytes, 8 for unsigned bytes, the number of axes, their sizes."""
    raw = content(path)
    if raw[:3] != b"\0\0\x08":
        raise ValueError(f"{path} is not an IDX file of unsigned bytes")
    axes = raw[3]
    shape = np.frombuffer(raw, ">u4", count=axes, offset=4).astype(int)
    values = np.frombuffer(raw, np.uint8, offset=4 + 4 * axes)
    return torch.from_numpy(values.reshape(shape).copy())


def shuffled(n: int, seed: int) -> Tensor:
    """0 to n - 1 in an order that depends on the seed alone."""
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))
