"""Handwritten digits to learn from: MNIST, or, for quick runs, those of scikit-learn.

Not an example itself.
"""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

Part = tuple[Tensor, Tensor]  #: images (count, height, width) in [0, 1], and classes


@lru_cache
def digits(training: int, others: int, quick: bool) -> tuple[Part, Part, Part]:
    """So many to train with, and to validate and to test with; always the same ones."""
    if quick:
        from sklearn.datasets import load_digits

        known = load_digits()
        images = torch.tensor(known.images, dtype=torch.float32) / 16
        classes = torch.tensor(known.target)
    else:
        from experiments.data import idx

        mnist = idx.load("mnist", fetch=True)
        images, classes = mnist.images.squeeze(1), mnist.labels
    chosen = torch.randperm(len(images), generator=torch.Generator().manual_seed(0))
    parts = chosen[: training + 2 * others].split([training, others, others])
    first, second, third = ((images[rows], classes[rows]) for rows in parts)
    return first, second, third
