"""Scores, temperatures and upstream gradients for the recorded calls; always the same ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tests import bank

DTYPES = (torch.float32, torch.float64)
SIZES = (1, 2, 3, 15, 16, 17, 64, 65, 100, 1000)  #: around the widths of registers and of tiles
TEMPERATURES = bank.TEMPERATURES  #: from 1e-6 to 1e6
LONG = 50_000  #: a row that several threads share
MANY = 40, 900  #: rows that several threads share out, and their length
MILD = (0.1, 1.0, 10.0)  #: where no slope underflows


def scores(n: int, dtype: torch.dtype, families: Sequence[str] = bank.FAMILIES) -> Tensor:
    """One row of each family."""
    return torch.stack([torch.from_numpy(bank.row(f, n)) for f in families]).to(dtype)


def smooth_scores(n: int, dtype: torch.dtype, count: int = 3) -> Tensor:
    """Rows without ties, so that gradients are unique."""
    return 2 * torch.randn(count, n, dtype=torch.float64, generator=seeded(n)).to(dtype)


def with_infinities(n: int, dtype: torch.dtype) -> Tensor:
    """Rows with -inf, +inf, both, NaN, nothing but -inf, zeros of both signs."""
    x = smooth_scores(n, dtype, 6)
    x[0, ::3] = -math.inf
    x[1, ::4] = math.inf
    x[2, ::3], x[2, 1::3] = -math.inf, math.inf
    x[3, n // 2] = math.nan
    x[4] = -math.inf
    x[5] = torch.where(x[5] > 0, 0.0, -0.0)
    return x


def upstream_for(result: Tensor, dtype: torch.dtype) -> Tensor:
    """Any gradient with respect to a result, in the dtype of the kernel."""
    generator = seeded(10**6 + result.numel())  # not the numbers that the scores are made of
    return torch.randn(result.shape, dtype=torch.float64, generator=generator).to(dtype)


def seeded(number: int) -> torch.Generator:
    return torch.Generator().manual_seed(number)


def cycled(values: Sequence[float], count: int, start: int = 0) -> Tensor:
    """One number per row, in turn, in float64."""
    turn = itertools.islice(itertools.cycle(values), start, start + count)
    return torch.tensor(list(turn), dtype=torch.float64)


def one_or_all(turn: int, values: Sequence[float], count: int) -> Tensor:
    """In turn: one temperature for each row, one for all of them."""
    if turn % 2 == 0:
        return cycled(values, count)
    return torch.tensor([values[len(values) // 2]], dtype=torch.float64)


def stride(value: Tensor, rows: int) -> int:
    """1 for one number per row, 0 for one that serves all. (With one row both are the same.)"""
    return int(len(value) == rows > 1)


def is_wide(dtype: torch.dtype) -> int:
    return int(dtype == torch.float64)


def gradient_of(function: Callable[[Tensor], Tensor], x: Tensor, upstream: Tensor) -> Tensor:
    """The vector-Jacobian product in float64, by autograd."""
    at = x.double().requires_grad_()
    (gradient,) = torch.autograd.grad(function(at), at, upstream.double())
    return gradient


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
