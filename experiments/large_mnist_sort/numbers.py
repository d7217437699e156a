"""Images that show numbers of several digits, and lists of them."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F


class Digits(NamedTuple):
    """Images (N, height, width) of single digits, and their labels."""

    images: Tensor
    labels: Tensor

    @classmethod
    def shrunk(cls, images: Tensor, labels: Tensor, shrink: int) -> Digits:
        """Of images (N, 1, height, width). What is side by side may be made smaller before."""
        small = F.avg_pool2d(images, shrink) if shrink > 1 else images
        return cls(small.squeeze(1), labels)

    def part(self, chosen: slice) -> Digits:
        return Digits(self.images[chosen], self.labels[chosen])

    def draw(self, count: int, digits: int) -> tuple[Tensor, Tensor]:
        """Images (count, 1, height, digits·width) of random digits side by side, and numbers."""
        device = self.labels.device
        chosen = torch.randint(len(self.labels), (count, digits), device=device)
        powers = 10 ** torch.arange(digits - 1, -1, -1, device=device)
        pictures = self.images[chosen].transpose(1, 2).flatten(2).unsqueeze(1)
        return pictures, (self.labels[chosen] * powers).sum(-1)


def lists(count: int, size: int, regroup: int = 1, device: str = "cpu") -> Tensor:
    """Lists (..., size) of the places 0 to count - 1: each in as many lists as it is regrouped,
    if the size divides their number. The first lists are in order."""
    many = count // size * size
    orders = [torch.arange(many, device=device)]
    orders += [torch.randperm(count, device=device)[:many] for _ in range(regroup - 1)]
    return torch.cat(orders).view(-1, size)


def places(numbers: Tensor) -> Tensor:
    """Where each belongs, from 0; of equal numbers, the first is first.

    >>> places(torch.tensor([30, 10, 20]))
    tensor([2, 0, 1])
    """
    return numbers.argsort(dim=-1, stable=True).argsort(-1)
