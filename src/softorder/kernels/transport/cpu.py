"""Calls of the compiled kernels for entropic transport."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder.kernels import _native
from softorder.kernels.transport import masses, plans
from softorder.kernels.transport.reference import Solution


def solve(
    gains: Tensor,
    levels: Tensor,
    total: Tensor,
    temperature: Tensor,
    solver: int,
    tolerance: float,
    max_iterations: int,
    max_entries: int,
) -> Solution:
    """The thresholds of every row; all of them share the gains."""
    shape, n, thresholds = gains.shape[:-2], gains.shape[-1], levels.shape[-1]
    gains, levels = gains.contiguous(), levels.expand(*shape, thresholds).contiguous()
    total = total.expand(*shape, 1).contiguous()
    temperature, epsilon, stride = _native.placed(temperature, shape)
    centre, rest, error = (torch.empty_like(v) for v in (levels, levels, total))
    iterations = torch.empty(shape, dtype=torch.int32, device="cpu")
    _native.call(
        "transport_solve",
        _native.pointer(gains),
        _native.pointer(levels),
        _native.pointer(total),
        epsilon,
        _native.placed(tolerance, ())[1],
        _native.pointer(centre),
        _native.pointer(rest),
        _native.pointer(iterations),
        _native.pointer(error),
        math.prod(shape),
        n,
        thresholds,
        stride,
        max_iterations,
        _native.threads(),
    )
    return Solution(centre, rest, iterations, error.squeeze(-1))


def plan(gains: Tensor, temperature: Tensor, *setting: Tensor) -> Tensor:
    """P."""
    out = gains.new_empty((*gains.shape[:-2], setting[0].shape[-1] + 1, gains.shape[-1]))
    _call("transport_plan_forward", (gains, temperature, *setting), None, None, out, None, None)
    return out


def plan_vjp(upstream: Tensor, *given: Tensor) -> tuple[Tensor, Tensor]:
    """The gradients of gains and temperature."""
    return _backward(upstream, given, None)


def log_below(*arguments: Any) -> tuple[Tensor, Tensor]:
    """log Q_k, and the rest of balanced thresholds."""
    *given, ks = arguments
    gains, rest, cold = given[0], given[-1].clone(), _flags(given[0])
    out = gains.new_empty((*gains.shape[:-2], len(ks), gains.shape[-1]))
    _call("transport_plan_forward", given, ks, None, out, None, cold)
    if cold.any():
        which = cold > 0
        by_torch = partial(masses.log_below, ks=ks)
        out[which], rest[which] = by_torch(*_rows(which, given))
    return out, rest


def log_below_vjp(upstream: Tensor, *arguments: Any) -> tuple[Tensor, Tensor]:
    """The gradients of gains and temperature."""
    *given, ks = arguments
    return _backward(upstream, given, ks)


def _backward(
    upstream: Tensor, given: Sequence[Tensor], ks: Sequence[int] | None
) -> tuple[Tensor, Tensor]:
    gains, cold = given[0], _flags(given[0])
    found = gains.new_empty(gains.shape), gains.new_empty(gains.shape[:-2])
    _call("transport_plan_backward", given, ks, upstream, *found, cold)
    if cold.any():
        which = cold > 0
        vjp = plans.plan_vjp if ks is None else partial(masses.log_below_vjp, ks=ks)
        found_by_torch = vjp(upstream[which], *_rows(which, given))
        for value, by_torch in zip(found, found_by_torch, strict=True):
            value[which] = by_torch
    return found


def _flags(gains: Tensor) -> Tensor:
    """Which rows a kernel leaves to plain torch: those whose thresholds are too cold for it."""
    return torch.empty(gains.shape[:-2], dtype=torch.int32, device="cpu")


def _rows(which: Tensor, given: Sequence[Tensor]) -> list[Tensor]:
    gains, temperature, *setting = given
    setting = [value.expand(*which.shape, value.shape[-1]) for value in setting]
    return [value[which] for value in (gains, temperature.expand(which.shape), *setting)]


def _call(
    name: str,
    given: Sequence[Tensor],
    ks: Sequence[int] | None,
    upstream: Tensor | None,
    out: Tensor,
    by_temperature: Tensor | None,
    cold: Tensor | None,
) -> None:
    gains, temperature, *setting = given
    shape, n, thresholds = gains.shape[:-2], gains.shape[-1], setting[0].shape[-1]
    levels, total, centre, rest = (v.expand(*shape, v.shape[-1]).contiguous() for v in setting)
    gains, upstream = gains.contiguous(), None if upstream is None else upstream.contiguous()
    temperature, epsilon, stride = _native.placed(temperature, shape)
    places = None if ks is None else array("q", ks)
    _native.call(
        name,
        _native.pointer(gains),
        _native.pointer(levels),
        _native.pointer(total),
        epsilon,
        _native.pointer(centre),
        _native.pointer(rest),
        0 if places is None else _native.address(places),
        _native.pointer(upstream),
        _native.pointer(out),
        _native.pointer(by_temperature),
        _native.pointer(cold),
        math.prod(shape),
        n,
        thresholds,
        thresholds + 1 if ks is None else len(ks),
        stride,
        _native.threads(),
    )
