"""Calls of the compiled kernels for one entry a row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels import _native


def log_entries(
    scores: Tensor, index: Tensor, temperature: Tensor, ks: Sequence[int], density: int
) -> tuple[Tensor, Tensor]:
    """log p, and the thresholds."""
    log_p = torch.empty(len(scores), len(ks), dtype=torch.float64, device="cpu")
    return log_p, _forward(scores, index, temperature, log_p, ks, density)


def loss(
    scores: Tensor,
    index: Tensor,
    temperature: Tensor,
    shares: Tensor,
    ks: Sequence[int],
    density: int,
    apart: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The loss of every row, log p, the derivatives of the one by the other, and thresholds."""
    losses = torch.empty(len(scores), dtype=torch.float64, device="cpu")
    log_p, pull = (
        torch.empty(len(scores), len(ks), dtype=torch.float64, device="cpu") for _ in range(2)
    )
    mixture = _Mixture(shares.contiguous(), losses, pull, apart)
    return losses, log_p, pull, _forward(scores, index, temperature, log_p, ks, density, mixture)


class _Mixture(NamedTuple):
    """What a loss wants beside log p."""

    shares: Tensor | None = None
    losses: Tensor | None = None
    pull: Tensor | None = None
    apart: bool = False


_NONE = _Mixture()


def _forward(
    scores: Tensor,
    index: Tensor,
    temperature: Tensor,
    log_p: Tensor,
    ks: Sequence[int],
    density: int,
    mixture: _Mixture = _NONE,
) -> Tensor:
    """Fills what is given, and returns the thresholds."""
    x, y = scores.contiguous(), index.contiguous()
    rows, n = x.shape
    b = x.new_empty(len(ks), 2, rows)
    shares, losses, pull, apart = mixture
    temperature, stride = _native.dense(temperature, (rows,))
    _native.call(
        "one_entry_forward",
        _native.pointer(x),
        _native.pointer(y),
        _native.pointer(temperature),
        _native.pointer(_counts(*ks)),
        _native.pointer(shares),
        _native.pointer(b),
        _native.pointer(log_p),
        _native.pointer(losses),
        _native.pointer(pull),
        rows,
        n,
        len(ks),
        stride,
        shares is not None and len(shares) > 1,
        density,
        apart,
        x.dtype is torch.float64,
        _native.threads(),
    )
    return b


def vjp(
    upstream: Tensor,
    pull: Tensor,
    scores: Tensor,
    index: Tensor,
    temperature: Tensor,
    b: Tensor,
    ks: Sequence[int],
    density: int,
    by_temperature: bool,
) -> tuple[Tensor, Tensor]:
    """Gradients of the scores, and of the temperature of every row if wanted."""
    x, y, v, b = scores.contiguous(), index.contiguous(), pull.contiguous(), b.contiguous()
    rows, n = x.shape
    by_scores = torch.empty_like(x)
    by_row = torch.empty(rows, dtype=torch.float64, device="cpu")
    temperature, stride = _native.dense(temperature, (rows,))
    upstream, upstream_stride = _native.dense(upstream, (rows,))
    _native.call(
        "one_entry_backward",
        _native.pointer(x),
        _native.pointer(y),
        _native.pointer(temperature),
        _native.pointer(_counts(*ks)),
        _native.pointer(b),
        _native.pointer(v),
        _native.pointer(upstream),
        _native.pointer(by_scores),
        _native.pointer(by_row) if by_temperature else 0,
        rows,
        n,
        len(ks),
        stride,
        upstream_stride,
        density,
        x.dtype is torch.float64,
        _native.threads(),
    )
    return by_scores, by_row if by_temperature else by_row.zero_()


@lru_cache(maxsize=64)
def _counts(*ks: int) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(ks, dtype=torch.float64, device="cpu")
