"""Calls of the kernels for Pareto sampling."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from softorder.kernels.pareto import reference
from softorder.kernels.subsets.circle import tilt
from tests.machines.calls import Call, Expected, Recipe, later
from tests.machines.rows import DTYPES, is_wide, seeded, short
from tests.machines.tolerances import allowed, largest

_DRAWS = 2


def recipes() -> Iterator[Recipe]:
    for dtype, n, spread in product(DTYPES, (1, 2, 9, 64, 300), (1.0, 20.0)):
        yield later("pareto_forward", _forward, dtype, n, spread)
        yield later("pareto_backward", _backward, dtype, n, spread)


def _forward(dtype: torch.dtype, n: int, spread: float) -> Call:
    u, size, draws = problem(n, spread)
    fine = is_wide(dtype)
    weights = reference.weights(u, size, bool(fine))
    log_p, taken = reference.log_prob(u, size, draws, bool(fine))
    exact = torch.float64
    values = _common(u, size, fine) | {
        "draws": draws,
        "weights": Expected(weights, exact, allowed("pareto", exact, largest(weights, 0.0))),
        "log_prob": Expected(log_p, exact, allowed("pareto", exact, largest(log_p))),
        "taken": Expected(taken, exact, allowed("pareto", exact, largest(taken, 0.0))),
        "count": _DRAWS,
    }
    return Call("pareto_forward", f"{short(dtype)} n={n} spread={spread}", values)


def _backward(dtype: torch.dtype, n: int, spread: float) -> Call:
    u, size, shares = shares_of(n, spread)
    fine = is_wide(dtype)
    right = reference.vjp(u, size, shares, bool(fine))
    tolerance = allowed("pareto gradient", torch.float64, largest(right))
    values = _common(u, size, fine) | {
        "shares": shares,
        "gradient": Expected(right, torch.float64, tolerance),
    }
    return Call("pareto_backward", f"{short(dtype)} n={n} spread={spread}", values)


def problem(n: int, spread: float) -> tuple[Tensor, Tensor, Tensor]:
    """Logits of which one is impossible and one certain, and draws; one of them with too many."""
    theta = spread * torch.randn(4, n, dtype=torch.float64, generator=seeded(n))
    if n > 4:
        theta[1, 0], theta[2, 1] = -torch.inf, torch.inf
    size = torch.tensor([1, max(n // 2, 1), max(n // 3, 1), n], dtype=torch.float64)
    noise = torch.randn(_DRAWS, 4, n, dtype=torch.float64, generator=seeded(7))
    order = (theta + noise).argsort(-1, descending=True).argsort(-1)
    draws = (order < size.unsqueeze(-1)).double()
    draws[-1, 0] = 1
    return tilt(theta, size), size, draws


def shares_of(n: int, spread: float) -> tuple[Tensor, Tensor, Tensor]:
    """For upstreams between ½ and 1."""
    u, size, draws = problem(n, spread)
    _, taken = reference.log_prob(u, size, draws, True)
    upstream = torch.linspace(0.5, 1, draws[..., 0].numel(), dtype=torch.float64)
    share = upstream.view(taken.shape) / torch.where(taken > 0, taken, 1.0)
    return u, size, (share.unsqueeze(-1) * draws).sum(0)


def _common(u: Tensor, size: Tensor, fine: int) -> dict:
    return {"u": u, "size": size, "rows": len(u), "n": u.shape[-1], "fine": fine}
