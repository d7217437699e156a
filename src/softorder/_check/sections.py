"""Sets to project onto: budgets, boxes, and whether they hold any point."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder._check import _tensors, _values
from softorder._check._mode import eager
from softorder._check._values import PerRow, first, refuse


def budget(budget: PerRow, cap: float, scores: Tensor, dim: object) -> None:
    """`budget` is in [0, n cap]; shapes are judged with the scores."""
    _tensors.floating("scores", scores)
    _tensors.several(dim, scores.dim())
    axes = range(scores.dim()) if dim is None else dim if isinstance(dim, tuple) else (dim,)
    n = math.prod(scores.shape[axis] for axis in axes)
    message = (
        f"budget must be between 0 and {n * cap:g}, the number of scores times the cap, but got"
    )
    if _values.is_number("budget", budget):
        if not 0 <= budget <= n * cap:
            raise ValueError(f"{message} {budget}")
    elif isinstance(budget, Tensor):
        _values.real_numbers("budget", budget)
        if eager() and budget.numel():
            wrong = ~((budget >= 0) & (budget <= n * cap))
            refuse("budget", wrong, lambda: f"{message} {first(budget, wrong)}")


def beside(name: str, value: PerRow, scores: Tensor) -> Tensor:
    """A number, or a tensor that broadcasts to scores; as a tensor. NaN is none; w must be > 0."""
    if not isinstance(value, Tensor):
        _values.is_number(name, value)
        value = torch.full((), value, dtype=torch.float64, device=scores.device)
    _values.real_numbers(name, value)
    _values.beside(name, value, scores)
    if not _values.broadcasts(value.shape, scores.shape):
        raise ValueError(
            f"{name} must broadcast to the shape of scores, {tuple(scores.shape)}, but got shape "
            f"{tuple(value.shape)}"
        )
    if eager() and value.numel():
        positive = name == "weights"
        wrong = ~((value > 0) & value.isfinite()) if positive else value.isnan()
        allowed = "finite and > 0" if positive else "a number or ±inf"
        refuse(name, wrong, lambda: f"{name} must be {allowed}, but got {first(value, wrong)}")
    return value


def total(total: PerRow, scores: Tensor, dim: int) -> Tensor:
    """A number, or a tensor that broadcasts over the rows; as a tensor."""
    if not isinstance(total, Tensor):
        _values.is_number("total", total)
        total = torch.full((), total, dtype=torch.float64, device=scores.device)
    _values.per_row("total", total, scores, dim)
    return total


def feasible(lower: Tensor, upper: Tensor, weights: Tensor, total: Tensor) -> None:
    """No bound is above its upper one, and some point of the box has the sum."""
    if not eager() or not lower.numel():
        return
    lower, upper, weights, total = (v.detach().double() for v in (lower, upper, weights, total))
    wrong = ~(lower <= upper)
    refuse("lower", wrong, lambda: f"lower must be <= upper, but got {first(lower, wrong)}")
    least, most = (weights * lower).sum(-1), (weights * upper).sum(-1)
    slack = 1e-5 * (1 + total.abs())
    outside = ~((least - slack <= total) & (total <= most + slack))
    refuse(
        "total",
        outside,
        lambda: (
            f"total must be between {first(least.expand_as(outside), outside):g} and "
            f"{first(most.expand_as(outside), outside):g}, the sums of weights times bounds, but "
            f"got {first(total.expand_as(outside), outside):g}"
        ),
    )
