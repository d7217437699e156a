"""Exact draws of independent Bernoulli units given their number, by halving.

A tree holds the law of the number of successes in every block of 2^j units. From the top, the
number m of a block is divided between its halves: the left one gets a with probability

    L_a R_{m-a} / Σ_b L_b R_{m-b}

for all blocks of a level and all rows at once. O(n log n) per draw, O(n log² n) once per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

Generator = torch.Generator | None

_DIRECT = 16  # longer laws are convolved by FFT
_LEAST = 1e-150  # of a number that can occur: the product of two is not 0


class Blocks(NamedTuple):
    """Of every block of a level: the law of its number, and the numbers that can occur."""

    law: Tensor  # (..., blocks, width + 1)
    least: Tensor  # (..., blocks)
    most: Tensor


def draw(
    p: Tensor,
    q: Tensor,
    size: Tensor,
    sample_shape: Sequence[int],
    generator: Generator,
) -> Tensor:
    """x in {0,1} of shape (*sample_shape, *p.shape), Σ x = size; p + q = 1, Σ p near size."""
    n = p.shape[-1]
    rows = p.shape[:-1]
    counts = size.expand((*sample_shape, *rows)).unsqueeze(-1)
    for blocks in reversed(_levels(p, q)):
        counts = _divide(blocks, counts, generator)
    return counts[..., :n]


def _levels(p: Tensor, q: Tensor) -> list[Blocks]:
    """The blocks of width 1, 2, 4, … up to the halves of the whole; none for a single unit."""
    n = p.shape[-1]
    width = 1 << max(0, n - 1).bit_length()
    law = torch.stack([pad(q, (0, width - n), value=1.0), pad(p, (0, width - n))], -1)
    least, most = ((law[..., i] == 0).long() for i in (0, 1))
    levels = [Blocks(law, least, 1 - most)]
    while levels[-1].law.shape[-2] > 2:
        levels.append(_join(levels[-1]))
    return levels if width > 1 else []


def _join(blocks: Blocks) -> Blocks:
    """Pairs of neighbours, with what cannot occur at exactly 0 in spite of rounding."""
    law = convolve(blocks.law[..., 0::2, :], blocks.law[..., 1::2, :])
    least, most = (v[..., 0::2] + v[..., 1::2] for v in (blocks.least, blocks.most))
    number = torch.arange(law.shape[-1], device=law.device)
    possible = (number >= least.unsqueeze(-1)) & (number <= most.unsqueeze(-1))
    return Blocks(law.clamp_(min=_LEAST) * possible, least, most)


def convolve(a: Tensor, b: Tensor) -> Tensor:
    """Σ_i a_i b_{m-i} over the last axis; absolute errors of the order of rounding."""
    length = a.shape[-1]
    if length > _DIRECT + 1:
        # 9 2^m points: fast, and enough for the 2 length - 1 numbers
        points = 9 * (length - 1) // 4
        product = torch.fft.rfft(a, points) * torch.fft.rfft(b, points)
        return torch.fft.irfft(product, points)[..., : 2 * length - 1]
    # the sums along the antidiagonals of a bᵀ, its rows sheared until these are columns
    outer = pad(a.unsqueeze(-1) * b.unsqueeze(-2), (0, length)).flatten(-2)
    return outer[..., :-length].unflatten(-1, (length, 2 * length - 1)).sum(-2)


def _divide(blocks: Blocks, counts: Tensor, generator: Generator) -> Tensor:
    """The numbers of both halves of every block, given the block's own."""
    left, right = blocks.law[..., 0::2, :], blocks.law[..., 1::2, :]
    share = torch.arange(left.shape[-1], device=left.device)
    other = counts.unsqueeze(-1) - share
    inside = (other >= 0) & (other < left.shape[-1])
    weight = right.expand(*other.shape).gather(-1, other.clamp_(0, left.shape[-1] - 1))
    total = torch.cumsum(weight.mul_(left).mul_(inside), -1)
    level = torch.rand(counts.shape, generator=generator, dtype=left.dtype, device=left.device)
    given = (total <= (level * total[..., -1]).unsqueeze(-1)).sum(-1)
    return torch.stack([given, counts - given], -1).flatten(-2)
