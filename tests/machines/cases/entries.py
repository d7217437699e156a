"""Calls of the kernels for one entry a row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from softorder.densities import BUILT_IN
from softorder.kernels.one_entry import reference
from tests.machines.calls import Call, Expected, Recipe, Unchecked, later
from tests.machines.rows import DTYPES, MILD, is_wide, one_or_all, short, smooth_scores, stride
from tests.machines.tolerances import allowed, largest

_DENSITIES = tuple(BUILT_IN)  # in the order of enum Density
_KS = (0, 2, 5)  # a softmax, and two thresholds


def recipes() -> Iterator[Recipe]:
    for turn, (density, dtype, n) in enumerate(product(_DENSITIES, DTYPES, (6, 65, 300))):
        x, tau = smooth_scores(n, dtype, 5), one_or_all(turn, MILD[1:], 5)
        for kernel, make in (("one_entry_forward", _forward), ("one_entry_backward", _backward)):
            yield later(kernel, make, density, x, tau, bool(turn % 3))


def _forward(density: str, x: Tensor, tau: Tensor, apart: bool) -> Call:
    index, shares = _targets(x), _shares(apart)
    number = _DENSITIES.index(density)
    loss, log_p, pull, _ = reference.loss(x.double(), index, tau, shares, _KS, number, apart)
    tolerance = allowed("one entry", x.dtype, largest(log_p, 1 / tau.expand(len(x))))
    values = _common(density, x, tau, index) | {
        "shares": shares,
        "b": Unchecked((len(_KS), 2, len(x)), x.dtype),
        "log_p": Expected(log_p, torch.float64, tolerance),
        "loss": Expected(loss, torch.float64, tolerance),
        "pull": Expected(pull, torch.float64, tolerance),
        "total": Expected(_mean(loss, index), x.dtype, tolerance.amax(0, keepdim=True)),
        "shares_stride": 0,
        "apart": int(apart),
        "mean": 1,
    }
    return Call("one_entry_forward", _label(density, x), values)


def _backward(density: str, x: Tensor, tau: Tensor, by_temperature: bool) -> Call:
    index, shares = _targets(x), _shares(False)
    number, rows = _DENSITIES.index(density), len(x)
    _, _, pull, b = reference.loss(x.double(), index, tau, shares, _KS, number, False)
    given = reference.loss(x, index, tau, shares, _KS, number, False)[3]
    upstream = torch.linspace(0.5, 1, rows, dtype=torch.float64)
    right = upstream, pull, x.double(), index, tau, b, _KS, number, True
    by_scores, by_tau = reference.vjp(*right)
    unit = largest(by_scores, 1 / tau.expand(rows))
    by_row = None
    if by_temperature:
        warm = allowed("one entry gradient", x.dtype, torch.maximum(unit, by_tau.abs()))
        by_row = Expected(by_tau, torch.float64, warm)
    values = _common(density, x, tau, index) | {
        "b": given,
        "pull": pull,
        "upstream": upstream,
        "grad_scores": Expected(by_scores, x.dtype, allowed("one entry gradient", x.dtype, unit)),
        "grad_temperature": by_row,
        "upstream_stride": 1,
    }
    return Call("one_entry_backward", _label(density, x), values)


def _targets(x: Tensor) -> Tensor:
    """The largest score of every row: a likely one has a gradient; the last row is ignored."""
    index = x.argmax(-1)
    index[-1] = -1
    return index


def _mean(loss: Tensor, index: Tensor) -> Tensor:
    return loss[index >= 0].mean(0, keepdim=True)


def _shares(apart: bool) -> Tensor:
    return torch.tensor([[0.5, 0.2, 0.3] if apart else [0.3, 0.3, 0.4]], dtype=torch.float64)


def _common(density: str, x: Tensor, tau: Tensor, index: Tensor) -> dict:
    return {
        "scores": x,
        "index": index,
        "temperature": tau,
        "k": torch.tensor(_KS, dtype=torch.float64),
        "rows": len(x),
        "n": x.shape[-1],
        "columns": len(_KS),
        "temperature_stride": stride(tau, len(x)),
        "density": _DENSITIES.index(density),
        "wide": is_wide(x.dtype),
    }


def _label(density: str, x: Tensor) -> str:
    return f"{density} {short(x.dtype)} n={x.shape[-1]}"
