"""Calls of the kernels for subsets of a given size."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from softorder.kernels.subsets import reference
from softorder.kernels.subsets.circle import MOST_POINTS as POINTS
from tests.machines.calls import Call, Expected, Recipe, Unchecked, later
from tests.machines.rows import DTYPES, is_wide, seeded, short, smooth_scores
from tests.machines.tolerances import allowed, largest

_DRAWS = 2


def recipes() -> Iterator[Recipe]:
    for dtype, n in product(DTYPES, (1, 2, 9, 64, 300)):
        theta = smooth_scores(n, dtype, 4)
        theta[1, n // 2] = -math.inf
        size = torch.tensor([1, 0 if n < 3 else 1, max(n // 3, 1), n], dtype=torch.float64)
        yield later("subsets_forward", _forward, theta, size)
        yield later("subsets_backward", _backward, theta, size)


def _forward(theta: Tensor, size: Tensor) -> Call:
    draws = _draws(theta, size)
    log_p, b, angle, weight = reference.log_prob(theta.double(), size, draws.double())
    unit = largest(log_p.unsqueeze(-1).flatten(0, 1))
    values = _common(theta, size, draws) | {
        "b": Unchecked(tuple(b.shape), theta.dtype),
        "log_prob": Expected(log_p, torch.float64, allowed("subsets", theta.dtype, unit)),
        "angle": Unchecked(tuple(angle.shape), torch.float64),
        "weight": Unchecked(tuple(weight.shape), torch.float64),
    }
    return Call("subsets_forward", _label(theta), values)


def _backward(theta: Tensor, size: Tensor) -> Call:
    draws = _draws(theta, size)
    _, *circle = reference.log_prob(theta.double(), size, draws.double())
    upstream = torch.linspace(0.5, 1, _DRAWS * len(theta), dtype=torch.float64)
    upstream = upstream.view(_DRAWS, len(theta))
    right = reference.vjp(upstream, theta.double(), size, draws.double(), *circle)
    tolerance = allowed("subsets gradient", theta.dtype, largest(right))
    _, b, angle, weight = reference.log_prob(theta, size, draws)
    values = _common(theta, size, draws) | {
        "b": b,
        "angle": angle,
        "weight": weight,
        "upstream": upstream,
        "gradient": Expected(right, theta.dtype, tolerance),
    }
    return Call("subsets_backward", _label(theta), values)


def _draws(theta: Tensor, size: Tensor) -> Tensor:
    """Some of the units that take part; the last draw of the first row has one unit too many."""
    noise = torch.randn(_DRAWS, *theta.shape, dtype=torch.float64, generator=seeded(7))
    order = (noise + theta).argsort(-1, descending=True).argsort(-1)
    draws = (order < size.unsqueeze(-1)).to(theta.dtype)
    draws[-1, 0] = 1
    return draws


def _common(theta: Tensor, size: Tensor, draws: Tensor) -> dict:
    return {
        "logits": theta,
        "size": size,
        "draws": draws,
        "rows": len(theta),
        "n": theta.shape[-1],
        "count": _DRAWS,
        "points": POINTS,
        "wide": is_wide(theta.dtype),
    }


def _label(theta: Tensor) -> str:
    return f"{short(theta.dtype)} n={theta.shape[-1]}"
