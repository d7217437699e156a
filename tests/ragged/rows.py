"""Rows of different lengths, and the same rows padded."""

from itertools import accumulate

import torch

#: Empty ones, single scores, a pack of lanes and one more, a tile and one more, long ones.
LENGTHS = (3, 0, 1, 17, 64, 65, 5, 200, 0, 33, 2, 2, 40, 41, 42, 150, 9, 8, 7, 6, 50, 1, 16, 0)


def ragged(lengths=LENGTHS, dtype=torch.float64, seed=0):
    """Values and offsets."""
    offsets = torch.tensor([0, *accumulate(lengths)])
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(int(offsets[-1]), generator=generator, dtype=dtype), offsets


def padded(values, offsets, filler=0.0):
    """The rows in a matrix, and the mask of what is no padding."""
    lengths = offsets.diff()
    mask = torch.arange(max(int(lengths.max()), 1)) < lengths.unsqueeze(-1)
    return torch.full(mask.shape, filler, dtype=values.dtype).masked_scatter(mask, values), mask


def jagged(values, offsets):
    return torch.nested.nested_tensor_from_jagged(values, offsets=offsets)
