"""Calls of the kernels for entropic transport."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from softorder.kernels.transport import masses, plans, reference
from tests.machines.calls import Call, Expected, Recipe, Unchecked, Value, later
from tests.machines.rows import smooth_scores, stride, upstream_for
from tests.machines.tolerances import allowed, largest

_PATIENCE = 100
_ROWS = 3
_SIZES = (2, 1), (9, 8), (64, 63), (300, 5)
_WIDE = torch.float64


def recipes() -> Iterator[Recipe]:
    for n, thresholds in _SIZES:
        for epsilon in ((0.05,), (0.5, 3.0, 50.0)):
            yield later("transport_solve", _solve, n, thresholds, epsilon)
        for ks in ((), (1, thresholds)):
            yield later("transport_plan_forward", _forward, n, thresholds, ks)
            yield later("transport_plan_backward", _backward, n, thresholds, ks)


def _problem(n: int, thresholds: int, epsilon: tuple[float, ...]) -> tuple[Tensor, ...]:
    """Gains, levels, total and temperature."""
    gains = smooth_scores(n, _WIDE, _ROWS)
    if n > 2:
        gains[1, n // 2] = torch.inf
    total = gains.isfinite().sum(-1, keepdim=True).double()
    levels = torch.arange(1.0, thresholds + 1, dtype=_WIDE).expand(_ROWS, -1).minimum(total)
    return gains, levels, total, torch.tensor(epsilon, dtype=_WIDE)


def _thresholds(gains: Tensor, levels: Tensor, total: Tensor, temperature: Tensor) -> Tensor:
    options = reference.NEWTON, 1e-12, _PATIENCE, 2**25
    temperature = temperature.expand(_ROWS)
    return reference.solve(gains.unsqueeze(1), levels, total, temperature, *options)


def _solve(n: int, thresholds: int, epsilon: tuple[float, ...]) -> Call:
    problem = _problem(n, thresholds, epsilon)
    found = _thresholds(*problem)
    tolerance = allowed("transport", _WIDE, largest(found.rest))
    values = _common(*problem) | {
        "tolerance": torch.tensor([1e-12], dtype=_WIDE),
        "centre": Expected(found.centre, _WIDE),
        "rest": Expected(found.rest, _WIDE, tolerance),
        "iterations": Unchecked((_ROWS,), torch.int32),
        "error": Unchecked((_ROWS,), _WIDE),
        "max_iterations": _PATIENCE,
    }
    return Call("transport_solve", f"n={n} thresholds={thresholds} ε={epsilon}", values)


def _forward(n: int, thresholds: int, ks: tuple[int, ...]) -> Call:
    given, values = _plan(n, thresholds, ks)
    right = masses.log_below(*given, ks)[0] if ks else plans.plan(*given)
    unit = largest(right.flatten(1))
    cold = torch.zeros(_ROWS, dtype=_WIDE)
    values |= {
        "out": Expected(right, _WIDE, allowed("transport plan", _WIDE, unit)),
        "cold": Expected(cold, torch.int32) if ks else Unchecked((_ROWS,), torch.int32),
    }
    return Call("transport_plan_forward", f"n={n} thresholds={thresholds} ks={ks}", values)


def _backward(n: int, thresholds: int, ks: tuple[int, ...]) -> Call:
    given, values = _plan(n, thresholds, ks)
    upstream = upstream_for(torch.empty(_ROWS, len(ks) or thresholds + 1, n), _WIDE)
    vjp = partial(masses.log_below_vjp, ks=ks) if ks else plans.plan_vjp
    right = vjp(upstream, *given)
    by_gain, by_temperature = (v.reshape(_ROWS, -1) for v in right)
    values |= {"upstream": upstream, "cold": Expected(torch.zeros(_ROWS), torch.int32)}
    for name, value in (("out", by_gain), ("grad_temperature", by_temperature)):
        tolerance = allowed("transport gradient", _WIDE, largest(value))
        values[name] = Expected(value, _WIDE, tolerance)
    return Call("transport_plan_backward", f"n={n} thresholds={thresholds} ks={ks}", values)


def _plan(
    n: int, thresholds: int, ks: tuple[int, ...]
) -> tuple[tuple[Tensor, ...], dict[str, Value]]:
    """What the reference is asked, and the fields of the kernel; at temperatures that are warm."""
    gains, levels, total, temperature = problem = _problem(n, thresholds, (2.0, 5.0, 50.0))
    found = _thresholds(*problem)
    given = gains.unsqueeze(1), temperature, levels, total, found.centre, found.rest
    values = _common(*problem) | {
        "centre": found.centre,
        "rest": found.rest,
        "ks": torch.tensor(ks) if ks else None,
        "columns": len(ks) or thresholds + 1,
    }
    return given, values


def _common(gains: Tensor, levels: Tensor, total: Tensor, temperature: Tensor) -> dict[str, Value]:
    return {
        "gains": gains,
        "levels": levels,
        "total": total,
        "temperature": temperature,
        "rows": _ROWS,
        "n": gains.shape[-1],
        "thresholds": levels.shape[-1],
        "temperature_stride": stride(temperature, _ROWS),
    }
