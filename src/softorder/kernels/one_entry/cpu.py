"""Calls of the compiled kernels for one entry a row."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from softorder._check import PerRow
from softorder.kernels import _native


def log_entries(
    scores: Tensor, index: Tensor, temperature: Tensor, ks: Sequence[int], density: int
) -> tuple[Tensor, Tensor]:
    """log p, and the thresholds."""
    log_p = torch.empty(len(scores), len(ks), dtype=torch.float64, device="cpu")
    b = scores.new_empty(len(ks), 2, len(scores))
    outputs = _native.pointer(b), _native.pointer(log_p), 0, 0, 0
    _forward(scores, index, temperature, None, ks, density, False, False, *outputs)
    return log_p, b


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
    outputs = _native.pointer(log_p), _native.pointer(losses), _native.pointer(pull), 0
    b = scores.new_empty(len(ks), 2, len(scores))
    given = scores, index, temperature, shares.contiguous()
    _forward(*given, ks, density, apart, False, _native.pointer(b), *outputs)
    return losses, log_p, pull, b


def reduced(
    scores: Tensor,
    index: Tensor,
    temperature: float,
    shares: Tensor,
    ks: Sequence[int],
    density: int,
    apart: bool,
    mean: bool,
) -> tuple[Tensor, Tensor]:
    """The sum or the mean of all losses, and what its gradient needs, in one piece of memory."""
    rows = scores.shape[0]
    cells = rows * len(ks)
    total = scores.new_empty(())
    kept = torch.empty(rows + 4 * cells, dtype=torch.float64, device="cpu")
    losses = _native.pointer(kept)
    log_p, pull, b = _after(losses, rows, cells)
    outputs = log_p, losses, pull, _native.pointer(total)
    _forward(scores, index, temperature, shares, ks, density, apart, mean, b, *outputs)
    return total, kept


def _after(losses: int, rows: int, cells: int) -> tuple[int, int, int]:
    """Where log p, pulls and thresholds are, behind the losses."""
    log_p = losses + 8 * rows
    return log_p, log_p + 8 * cells, log_p + 16 * cells


def _forward(
    scores: Tensor,
    index: Tensor,
    temperature: PerRow,
    shares: Tensor | None,
    ks: Sequence[int],
    density: int,
    apart: bool,
    mean: bool,
    b: int,
    log_p: int,
    losses: int,
    pull: int,
    total: int,
) -> None:
    """Fills what is at these addresses; without shares only thresholds and log p."""
    x, y = scores.contiguous(), index.contiguous()
    rows, n = x.shape
    temperature, stride = _native.dense(temperature, (rows,))
    _native.call(
        "one_entry_forward",
        _native.pointer(x),
        _native.pointer(y),
        _native.pointer(temperature),
        _native.pointer(_counts(*ks)),
        _native.pointer(shares),
        b,
        log_p,
        losses,
        pull,
        total,
        rows,
        n,
        len(ks),
        stride,
        shares is not None and shares.shape[0] > 1,
        density,
        apart,
        mean,
        x.dtype is torch.float64,
        _native.threads(),
    )


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
    v, b = pull.contiguous(), b.contiguous()
    by_row = torch.empty(len(scores), dtype=torch.float64, device="cpu")
    upstream, stride = _native.dense(upstream, scores.shape[:1])
    given = _native.pointer(b), _native.pointer(v), _native.pointer(upstream), stride
    by_tau = _native.pointer(by_row) if by_temperature else 0
    by_scores = _backward(scores, index, temperature, *given, ks, density, by_tau)
    return by_scores, by_row if by_temperature else by_row.zero_()


def reduced_vjp(
    upstream: float,
    kept: Tensor,
    scores: Tensor,
    index: Tensor,
    temperature: float,
    ks: Sequence[int],
    density: int,
) -> Tensor:
    """The gradient of the scores; `upstream` is that of the loss of every row."""
    rows = scores.shape[0]
    _, pull, b = _after(_native.pointer(kept), rows, rows * len(ks))
    one = array("d", (upstream,))
    return _backward(scores, index, temperature, b, pull, _native.address(one), 0, ks, density, 0)


def _backward(
    scores: Tensor,
    index: Tensor,
    temperature: PerRow,
    b: int,
    pull: int,
    upstream: int,
    upstream_stride: int,
    ks: Sequence[int],
    density: int,
    by_temperature: int,
) -> Tensor:
    """The gradient of the scores; fills that of the temperature if it has an address."""
    x, y = scores.contiguous(), index.contiguous()
    rows, n = x.shape
    by_scores = torch.empty_like(x)
    temperature, stride = _native.dense(temperature, (rows,))
    _native.call(
        "one_entry_backward",
        _native.pointer(x),
        _native.pointer(y),
        _native.pointer(temperature),
        _native.pointer(_counts(*ks)),
        b,
        pull,
        upstream,
        _native.pointer(by_scores),
        by_temperature,
        rows,
        n,
        len(ks),
        stride,
        upstream_stride,
        density,
        x.dtype is torch.float64,
        _native.threads(),
    )
    return by_scores


@lru_cache(maxsize=64)
def _counts(*ks: int) -> Tensor:
    with torch.inference_mode(False):
        return torch.tensor(ks, dtype=torch.float64, device="cpu")
