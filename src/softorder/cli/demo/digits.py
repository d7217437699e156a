"""The data: 1,797 handwritten digits of 8×8 pixels, which come with scikit-learn."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CLASSES = 10
_TRAINING = 500  # few, so that how the features are learned makes a difference


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 grey values in [0, 1], and their labels."""

    images: Tensor
    labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load(seed: int) -> Digits:
    """Another seed is another split into training and test images."""
    from sklearn.datasets import load_digits

    data = load_digits()
    images = torch.from_numpy(data.data).float() / 16
    labels = torch.from_numpy(data.target).long()
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    train, test = order[:_TRAINING], order[_TRAINING:]
    return Digits(images[train], labels[train], images[test], labels[test])
