"""Means of discrete choices of perturbed scores, and estimates of their derivatives.

p(x) = E[y(x + σ Z)] is differentiable whatever y is. Its Jacobian is

    "score"        E[y(x + σ Z) s(Z)ᵀ]/σ = Cov(y, s(Z))/σ      s = -∇ log f,  E s = 0
    "conditional"  that of the mean over one z_i, averaged over the others (ops/_crossings.py).

As p depends on x/σ alone, ∂p/∂σ = -(∂p/∂x) x/σ. The noise is not stored: it is drawn once more, a
few draws at a time, when the gradient is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from softorder import _check
from softorder._noise import NOISES, Noise
from softorder.kernels._autograd import once
from softorder.ops._crossings import Pdf, infinite

GRADIENTS = ("conditional", "score")
_AT_ONCE = 1 << 21  # numbers of a chunk of draws


class Choice(Protocol):
    """y, a function of keys with the draws on their first axis."""

    @property
    def width(self) -> int:
        """How many numbers y has for every key."""

    def chosen(self, keys: Tensor) -> Tensor:
        """y, of every draw."""

    def crossing(self, keys: Tensor, x: Tensor, sigma: Tensor, V: Tensor, pdf: Pdf) -> Tensor:
        """σ ∂<V, y>/∂x, given the other keys, added over the draws."""


class Draws(NamedTuple):
    """Noise that is the same every time it is asked for."""

    noise: Noise
    samples: int
    seed: int

    def of(self, x: Tensor, width: int) -> Iterator[Tensor]:
        """Chunks (draws, *x.shape)."""
        generator = torch.Generator(x.device).manual_seed(self.seed)
        size = max(_AT_ONCE // max(x.numel() * width, 1), 1)
        for start in range(0, self.samples, size):
            shape = (min(size, self.samples - start), *x.shape)
            yield self.noise.draw(x.new_empty(shape), generator)


def check_noise(samples: int, noise: str) -> None:
    _check.count("samples", samples, least=1)
    _check.choice("noise", noise, NOISES)


def draws(noise: str, samples: int, generator: torch.Generator | None) -> Draws:
    """Draws whose seed comes from the generator."""
    device = "cpu" if generator is None else generator.device
    seed = torch.randint(1 << 62, (), generator=generator, device=device)
    return Draws(NOISES[noise], samples, int(seed))


def mean(x: Tensor, sigma: Tensor, choice: Choice, noise: Draws, gradient: str) -> Tensor:
    """The mean of y over the draws; sigma is per row, in the dtype of x."""
    sigma = sigma.expand(x.shape[:-1]).unsqueeze(-1)
    return _Mean.apply(x, sigma, choice, noise, gradient)


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, sigma: Tensor, choice: Choice, noise: Draws, gradient: str
    ) -> Tensor:
        ctx.save_for_backward(x, sigma)
        ctx.statics = choice, noise, gradient
        chunks = (choice.chosen(x + sigma * z).sum(0) for z in noise.of(x, choice.width))
        total = next(chunks)
        for chunk in chunks:
            total += chunk
        return total / noise.samples

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        x, sigma = ctx.saved_tensors
        choice, noise, gradient = ctx.statics
        estimate = _conditional if gradient == "conditional" else _score
        with torch.no_grad():
            by_x = torch.where(infinite(x), 0.0, estimate(x, sigma, upstream, choice, noise))
            by_sigma = None
            if ctx.needs_input_grad[1]:
                by_sigma = -(by_x * _centred(x)).sum(-1, keepdim=True) / sigma
        why = "perturbed choices have no second derivatives"
        return *once(why, (by_x, by_sigma), upstream, x, sigma), None, None, None


def _conditional(x: Tensor, sigma: Tensor, V: Tensor, choice: Choice, noise: Draws) -> Tensor:
    total = torch.zeros_like(x)
    for z in noise.of(x, choice.width):
        total += choice.crossing(x + sigma * z, x, sigma, V, noise.noise.pdf)
    return total / (noise.samples * sigma)


def _score(x: Tensor, sigma: Tensor, V: Tensor, choice: Choice, noise: Draws) -> Tensor:
    """Σ (w - mean of the other w) s(z), w = <V, y>: unbiased, as the others do not know this z.

    With <V, y(x)> taken from w first, there is nothing to cancel, and a single draw has a baseline.
    """
    axes = tuple(range(x.dim() - 1 - V.dim(), 0))  # those of y in front of which rows are
    start = (choice.chosen(x.unsqueeze(0)) * V).sum(axes)
    products, scores = torch.zeros_like(x), torch.zeros_like(x)
    mean = torch.zeros_like(start[0])
    for z in noise.of(x, choice.width):
        w = (choice.chosen(x + sigma * z) * V).sum(axes) - start
        s = noise.noise.score(z)
        products += (w.unsqueeze(-1) * s).sum(0)
        scores += s.sum(0)
        mean += w.sum(0) / noise.samples
    if noise.samples == 1:
        return products / sigma
    return (products - mean.unsqueeze(-1) * scores) / ((noise.samples - 1) * sigma)


def _centred(x: Tensor) -> Tensor:
    """Scores less their mean, which p does not depend on; 0 for infinite ones."""
    known = ~infinite(x)
    finite = torch.where(known, x, 0.0)
    middle = finite.sum(-1, keepdim=True) / known.sum(-1, keepdim=True).clamp(min=1)
    return torch.where(known, x - middle, 0.0)
