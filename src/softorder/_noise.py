"""Random noise: how it is drawn, its density f, and -(log f)'."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

Generator = torch.Generator | None


class Noise(NamedTuple):
    draw: Callable[[Tensor, Generator], Tensor]  #: in the shape and dtype of a tensor
    pdf: Callable[[Tensor], Tensor]  #: f(z), 0 at ±inf
    score: Callable[[Tensor], Tensor]  #: -f'(z)/f(z), of mean 0


def gumbel(like: Tensor, generator: Generator = None) -> Tensor:
    """-log E of exponential numbers E."""
    if is_compiling():
        # torch.compile takes two exponential_ of one shape for the same numbers, not so two rand
        level = torch.rand(like.shape, generator=generator, dtype=like.dtype, device=like.device)
        return -torch.log(-torch.log1p(-level).clamp(max=-torch.finfo(like.dtype).eps / 4))
    exponential = torch.empty_like(like).exponential_(generator=generator)
    # An E that was rounded to 0 would be an infinite noise.
    return exponential.clamp_(min=torch.finfo(like.dtype).tiny).log_().neg_()


def normal(like: Tensor, generator: Generator = None) -> Tensor:
    if is_compiling():  # as above
        return torch.randn(like.shape, generator=generator, dtype=like.dtype, device=like.device)
    return torch.empty_like(like).normal_(generator=generator)


def sum_of_gamma(like: Tensor, k: Tensor, terms: int, generator: Generator = None) -> Tensor:
    """Noise of which k independent numbers sum to a Gumbel number, as `terms` → ∞.

    Gumbel's is Σ_i E_i/i - log s with exponential E_i, and each E_i a sum of k Gamma(1/k) numbers.
    k broadcasts to the shape of `like`.
    """
    k = k.clamp(min=1).to(like.dtype).expand(like.shape)
    shape = k.reciprocal()
    total = torch.zeros_like(like)
    for i in range(1, terms + 1):
        total += torch._standard_gamma(shape, generator=generator) / i
    return total - math.log(terms) / k


def _gumbel_pdf(z: Tensor) -> Tensor:
    z = z.clamp(min=-10)  # where e^(-e^10) is 0, and e^-z is finite
    return torch.exp(-z - torch.exp(-z))


def _normal_pdf(z: Tensor) -> Tensor:
    return torch.exp(-0.5 * z * z) * 0.3989422804014327


NOISES = {
    "normal": Noise(normal, _normal_pdf, lambda z: z),
    "gumbel": Noise(gumbel, _gumbel_pdf, lambda z: 1 - torch.exp(-z)),
}
