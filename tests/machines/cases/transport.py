"""Calls of the kernel for entropic transport."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from softorder.kernels.transport import reference
from tests.machines.calls import Call, Expected, Recipe, Unchecked, later
from tests.machines.rows import smooth_scores, stride
from tests.machines.tolerances import allowed, largest

_PATIENCE = 100


def recipes() -> Iterator[Recipe]:
    for n, thresholds in ((2, 1), (9, 8), (64, 63), (300, 5)):
        for epsilon in ((0.05,), (0.5, 3.0, 50.0)):
            yield later("transport_solve", _solve, n, thresholds, epsilon)


def _solve(n: int, thresholds: int, epsilon: tuple[float, ...]) -> Call:
    gains = smooth_scores(n, torch.float64, 3)
    if n > 2:
        gains[1, n // 2] = torch.inf
    temperature = torch.tensor(epsilon, dtype=torch.float64)
    total = gains.isfinite().sum(-1, keepdim=True).double()
    levels = torch.arange(1.0, thresholds + 1, dtype=torch.float64).expand(3, -1).minimum(total)
    tolerance = torch.tensor([1e-12], dtype=torch.float64)
    found = reference.solve(
        gains.unsqueeze(1),
        levels,
        total,
        temperature.expand(3),
        reference.NEWTON,
        tolerance.item(),
        _PATIENCE,
        2**25,
    )
    values = {
        "gains": gains,
        "levels": levels,
        "total": total,
        "temperature": temperature,
        "tolerance": tolerance,
        "centre": Expected(found.centre, torch.float64),
        "rest": Expected(
            found.rest, torch.float64, allowed("transport", torch.float64, largest(found.rest))
        ),
        "iterations": Unchecked((3,), torch.int32),
        "error": Unchecked((3,), torch.float64),
        "rows": 3,
        "n": n,
        "thresholds": thresholds,
        "temperature_stride": stride(temperature, 3),
        "max_iterations": _PATIENCE,
    }
    return Call("transport_solve", f"n={n} thresholds={thresholds} ε={epsilon}", values)
