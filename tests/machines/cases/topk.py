"""Calls of the soft top-k."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from softorder.densities import BUILT_IN
from softorder.kernels._layout import FORMATS, layout
from softorder.kernels.formulas import distance, exact
from softorder.kernels.threshold import reference
from tests import bank
from tests.machines.calls import Call, Expected, Recipe, Unchecked, later
from tests.machines.rows import (
    DTYPES,
    LONG,
    MANY,
    MILD,
    SIZES,
    TEMPERATURES,
    cycled,
    scores,
    short,
    smooth_scores,
    stride,
    upstream_for,
    with_infinities,
)
from tests.machines.tolerances import allowed, largest, where_defined

_DENSITIES = tuple(BUILT_IN)  # in the order of enum Density


def recipes() -> Iterator[Recipe]:
    for density, dtype in product(_DENSITIES, DTYPES):
        for n in SIZES:
            x = scores(n, dtype)
            k, tau = cycled(bank.ks(n), len(x)), cycled(TEMPERATURES, len(x))
            yield later("topk_forward", _forward, f"bank n={n}", density, x, k, tau)
        for n, k in ((5, 2.5), (33, 0.0), (64, 64.0)):
            at = torch.tensor([k], dtype=torch.float64), torch.tensor([0.7], dtype=torch.float64)
            yield later(
                "topk_forward",
                _forward,
                f"one k={k} and one τ n={n}",
                density,
                smooth_scores(n, dtype),
                *at,
            )
        for n in (3, 64, 65):
            x = with_infinities(n, dtype)
            k = cycled((1.0, n / 2, n / 3, 2.0, 1.0, 1.5), len(x))
            yield later(
                "topk_forward", _forward, f"infinities n={n}", density, x, k, cycled(MILD, len(x))
            )
        x = smooth_scores(100, dtype, 5)
        k = cycled((1.0, 50.0, 99.0, 0.25, 33.3), len(x))
        tau = cycled(MILD, len(x))
        yield later("topk_forward", _threshold, "thresholds n=100", density, x, k, tau)
        for n in (1, 17, 64, 300):
            x = scores(n, dtype)
            k, tau = cycled(bank.ks(n), len(x), 2), cycled(TEMPERATURES, len(x))
            yield later("topk_backward", _backward, f"bank n={n}", density, x, k, tau)
        x, y = with_infinities(100, dtype)[:3], smooth_scores(17, dtype)
        k, tau = cycled((5.5, 3.0), len(x)), torch.tensor([0.7], dtype=torch.float64)
        about = "infinities, one τ n=100"
        yield later("topk_backward", _backward, about, density, x, k, tau)
        about = "one upstream n=17"
        yield later("topk_backward", _backward, about, density, y, k, tau, one=True)
        rows, n = (1, LONG) if dtype == torch.float32 else MANY
        x, k = smooth_scores(n, dtype, rows), torch.tensor([n / 50], dtype=torch.float64)
        tau = torch.tensor([0.02], dtype=torch.float64)  # few scores are near a corner of F
        yield later("topk_forward", _forward, f"threads n={n}", density, x, k, tau)
        yield later("topk_backward", _backward, f"threads n={n}", density, x, k, tau)
    for density, dtype in product(_DENSITIES, FORMATS):
        for n in (5, 40, 300):
            x = smooth_scores(n, dtype, 19)
            k, tau = cycled((1.0, n / 3), len(x)), cycled(MILD, len(x))
            for make in (_across_forward, _across_backward):
                kernel = "topk_forward" if make is _across_forward else "topk_backward"
                yield later(kernel, make, f"masked rows across memory n={n}", density, x, k, tau)


def _forward(about: str, density: str, x: Tensor, k: Tensor, tau: Tensor) -> Call:
    p, _ = reference.forward(x.double(), *_broadcast(k, tau), None, _number(density))
    rows = len(x)
    values = _numbers(x, density) | {
        "scores": x,
        "k": k,
        "temperature": tau,
        "p": Expected(p, x.dtype, allowed("topk p", x.dtype, torch.ones(rows))),
        "centre": Unchecked((rows,), x.dtype),
        "rest": Unchecked((rows,), x.dtype),
        "k_stride": stride(k, rows),
        "temperature_stride": stride(tau, rows),
    }
    return Call("topk_forward", _label(about, density, x), values)


def _threshold(about: str, density: str, x: Tensor, k: Tensor, tau: Tensor) -> Call:
    """Without p: the thresholds themselves, where no plateau makes them ambiguous."""
    law = BUILT_IN[density].anchored
    b, _ = reference.solve(x.double(), k, tau, _number(density))
    slope = law.pdf(distance(x.double(), b, tau)).sum(-1) / tau
    unit = torch.maximum(k.clamp(min=1) / slope, largest((b[0] + b[1]).unsqueeze(-1), 0.0))
    tolerance = where_defined(allowed("topk threshold", x.dtype, unit), slope * tau > 1e-3)
    values = _numbers(x, density) | {
        "scores": x,
        "k": k,
        "temperature": tau,
        "centre": Expected(b[0] + b[1], x.dtype, tolerance, partner="rest"),
        "rest": Unchecked((len(x),), x.dtype),
        "sweeps": Unchecked((len(x),), torch.int32),
        "k_stride": stride(k, len(x)),
        "temperature_stride": stride(tau, len(x)),
    }
    return Call("topk_forward", _label(about, density, x), values)


def _backward(
    about: str, density: str, x: Tensor, k: Tensor, tau: Tensor, one: bool = False
) -> Call:
    law, rows = _number(density), len(x)
    k_rows, tau_rows = (v.expand(rows) for v in (k, tau))
    upstream = upstream_for(x, x.dtype)
    index = None
    if one:
        index = torch.arange(rows) % x.shape[-1]
        upstream = upstream.gather(-1, index.unsqueeze(-1))
    whole = upstream if index is None else torch.zeros_like(x).scatter(-1, index[:, None], upstream)
    b = reference.solve(x.double(), k_rows, tau_rows, law)[0]
    by_scores, by_row = reference.backward(whole.double(), x.double(), tau_rows, b, None, law, True)
    given = reference.solve(x, k_rows, tau_rows, law)[0]
    unit, defined = largest(by_scores, 1 / tau_rows), _differentiable(x, tau_rows, b, density)
    warm_unit = torch.maximum(unit, by_row[1].abs())

    def right(value: Tensor, dtype: torch.dtype, unit: Tensor) -> Expected:
        tolerance = allowed("topk gradient", x.dtype, unit)
        return Expected(value, dtype, where_defined(tolerance, defined))

    values = _numbers(x, density) | {
        "scores": x,
        "upstream": upstream,
        "index": index,
        "temperature": tau,
        "centre": given[0],
        "rest": given[1],
        "grad_scores": right(by_scores, x.dtype, unit),
        "grad_k": right(by_row[0], torch.float64, torch.ones(rows)),
        "grad_temperature": None if one else right(by_row[1], torch.float64, warm_unit),
        "temperature_stride": stride(tau, rows),
    }
    return Call("topk_backward", _label(about, density, x), values)


def _across_forward(about: str, density: str, x: Tensor, k: Tensor, tau: Tensor) -> Call:
    """Rows are columns in memory, of any format, and every fourth score takes no part."""
    mask = _mask(x)
    p, _ = reference.forward(x.double(), k, tau, mask, _number(density))
    values = _numbers(x, density) | {
        "scores": x.T,
        "k": k,
        "temperature": tau,
        "p": Expected(p.T, x.dtype, _within(torch.ones(1), "topk p", x.dtype)),
        "centre": Unchecked((len(x),), exact(x.dtype)),
        "rest": Unchecked((len(x),), exact(x.dtype)),
        "mask": mask,
        "layout": _across(x, 2, mask),
        "k_stride": 1,
        "temperature_stride": 1,
    }
    return Call("topk_forward", _label(about, density, x), values)


def _across_backward(about: str, density: str, x: Tensor, k: Tensor, tau: Tensor) -> Call:
    mask, law, wide = _mask(x), _number(density), exact(x.dtype)
    upstream = upstream_for(x, x.dtype)
    filled = torch.where(mask, x.double(), -torch.inf)
    b = reference.solve(filled, k, tau, law)[0]
    by_scores, _ = reference.backward(upstream.double(), x.double(), tau, b, mask, law, False)
    given = reference.solve(filled.to(wide), k, tau, law)[0]
    defined = _differentiable(filled, tau, b, density).all()
    unit = largest(by_scores, 1 / tau).amax().unsqueeze(0)
    tolerance = _within(unit, "topk gradient", x.dtype)
    values = _numbers(x, density) | {
        "scores": x.T,
        "upstream": upstream.T,
        "temperature": tau,
        "centre": given[0],
        "rest": given[1],
        "grad_scores": Expected(
            by_scores.T, x.dtype, tolerance if defined else torch.full((1,), torch.inf)
        ),
        "grad_k": Unchecked((len(x),), torch.float64),
        "mask": mask,
        "layout": _across(x, 3, mask),
        "temperature_stride": 1,
    }
    return Call("topk_backward", _label(about, density, x), values)


def _mask(x: Tensor) -> Tensor:
    return torch.arange(x.numel()).reshape(x.shape) % 4 != 1


def _across(x: Tensor, operands: int, mask: Tensor) -> Tensor:
    """The layout of so many matrices whose rows are columns in memory, and of a mask."""
    column = torch.empty(x.shape[::-1], dtype=x.dtype).T
    return torch.tensor(layout([column] * operands + [mask]))


def _within(unit: Tensor, answer: str, dtype: torch.dtype) -> Tensor:
    """Half formats are rounded, too: by up to half a unit in the last place."""
    return allowed(answer, dtype, unit) + 0.5 * torch.finfo(dtype).eps * unit.double()


def _number(density: str) -> int:
    return list(BUILT_IN).index(density)


def _differentiable(x: Tensor, tau: Tensor, b: Tensor, density: str) -> Tensor:
    """Rows whose slopes do not underflow, with no score on a corner of the uniform density."""
    law = BUILT_IN[density].anchored
    u = distance(x.double(), b, tau)
    pdf = law.pdf(u) * b[0].isfinite().unsqueeze(-1)
    total = pdf.sum(-1)
    least = 1e-290 if x.dtype == torch.float64 else 1e-30
    corner = torch.zeros_like(total, dtype=torch.bool)
    if density == "uniform":
        corner = ((u.abs() - 0.5).abs() < 1e-4).any(-1) | (u.abs() < 1e-4).any(-1)
        corner |= ((u - 1).abs() < 1e-4).any(-1)
    return ((total == 0) | (total > least)) & ~corner


def _broadcast(k: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    rows = max(len(k), len(tau))
    return (k, tau) if rows == 1 else (k.expand(rows), tau.expand(rows))


def _numbers(x: Tensor, density: str) -> dict:
    rows, n = x.shape
    return {
        "rows": rows,
        "n": n,
        "density": _DENSITIES.index(density),
        "format": FORMATS[x.dtype],
    }


def _label(about: str, density: str, x: Tensor) -> str:
    return f"{density} {short(x.dtype)} {about}"
