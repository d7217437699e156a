"""Lists of images that show numbers of several digits."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F


def draw(images: Tensor, labels: Tensor, shape: tuple[int, int], digits: int, shrink: int):  # type: ignore[no-untyped-def]
    """Images (lists, n, 1, height, digits·width) of random digits side by side, and the places
    (lists, n) of their numbers in ascending order."""
    chosen = torch.randint(len(labels), (*shape, digits), device=labels.device)
    powers = 10 ** torch.arange(digits - 1, -1, -1, device=labels.device)
    numbers = (labels[chosen] * powers).sum(-1)
    pictures = images[chosen].squeeze(3)  # (lists, n, digits, height, width)
    pictures = pictures.transpose(2, 3).flatten(3).unsqueeze(2)
    if shrink > 1:
        small = F.avg_pool2d(pictures.flatten(0, 1), shrink)
        pictures = small.unflatten(0, shape)
    return pictures, places(numbers)


def places(numbers: Tensor) -> Tensor:
    """Where each belongs, from 0; of equal numbers, the first is first.

    >>> places(torch.tensor([30, 10, 20]))
    tensor([2, 0, 1])
    """
    return numbers.argsort(dim=-1, stable=True).argsort(-1)
