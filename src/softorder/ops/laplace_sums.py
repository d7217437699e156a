"""The Laplace kernel sum, a building block of its own: `softorder.laplace_sum`."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.densities import BUILT_IN
from softorder.kernels._moved import moved, narrow
from softorder.kernels.sort import sort
from softorder.relaxations.sums import fsum


def laplace_sum(
    sources: Tensor,
    targets: Tensor,
    weights: Tensor | None = None,
    temperature: _check.PerRow = 1.0,
) -> Tensor:
    """Σ_i w_i exp(-|t_j - x_i|/τ) for every target t_j, in O((m + n) log(m + n)) time.

    A kernel density estimate, a soft histogram, an attention whose weights fall exponentially with
    distance: without the m × n table, and with memory O(m + n). The sum is never formed from
    exponentials that overflow, and an underflow is a true 0, whatever the temperature. It is
    differentiable in all four arguments, twice, also in forward mode, under torch.func and
    torch.compile; at |t_j - x_i| = 0 the derivative of the kernel is taken as 0.

    Args:
        sources: x, of shape (..., m), finite, in any order.
        targets: t, of shape (..., n), finite, in any order, of the same dtype.
        weights: w, of shape (..., m), of any sign; ones by default.
        temperature: τ > 0, a number or a tensor that broadcasts over the rows.

    Returns:
        Sums of shape (..., n). The leading axes (...) of all arguments are broadcast.

    >>> import torch, softorder as so
    >>> sources = torch.tensor([1.0, 4.0, 1.0])
    >>> so.laplace_sum(sources, torch.tensor([1.0, 2.0, 100.0])).numpy().round(4)
    array([2.0498, 0.8711, 0.    ], dtype=float32)

    A density estimate integrates to 1:

    >>> grid = torch.linspace(-10, 15, 10_001)
    >>> density = so.laplace_sum(sources, grid, temperature=0.5) / (2 * 0.5 * len(sources))
    >>> round(torch.trapezoid(density, grid).item(), 4)
    1.0
    """
    _check.points("sources", sources, sources)
    _check.points("targets", targets, sources)
    if weights is not None:
        _check.points("weights", weights, sources, size=sources.shape[-1])
    _check.temperature_alone(temperature)
    tau = _axis.per_row(temperature, sources)
    others = [v for v in (targets, weights) if v is not None]
    rows = torch.broadcast_shapes(*(v.shape[:-1] for v in (sources, *others)), tau.shape)
    x, x_order = _ordered(sources, rows)
    t, t_order = _ordered(targets, rows)
    w = None if weights is None else _in_order(_wide(weights, rows), x_order)
    total = 2 * fsum(x, t, w, tau, BUILT_IN["laplace"], derivative=1)
    return moved(total, t_order, narrow(t_order), back=True).to(sources.dtype)


def _wide(value: Tensor, rows: torch.Size) -> Tensor:
    value = value if value.dtype == torch.float64 else value.float()
    return value.expand(*rows, value.shape[-1])


def _ordered(value: Tensor, rows: torch.Size) -> tuple[Tensor, Tensor]:
    value = _wide(value, rows)
    order = sort(value).order
    return _in_order(value, order), order


def _in_order(value: Tensor, order: Tensor) -> Tensor:
    return moved(value, order, narrow(order), back=False)
