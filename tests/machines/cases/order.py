"""Calls of soft ranks and the soft sort, by F-sums and by projections, and of isotonic regression.

What the backward passes read was written by a forward pass on the recording machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import torch
from torch import Tensor

import softorder as so
from softorder.densities import BUILT_IN
from softorder.kernels import _native, isotonic, order, permutahedron
from softorder.kernels._density_numbers import number_of
from tests.machines.calls import Call, Expected, Recipe, SameAs, Unchecked, Value, later
from tests.machines.rows import (
    DTYPES,
    LONG,
    MANY,
    MILD,
    SIZES,
    TEMPERATURES,
    cycled,
    gradient_of,
    is_wide,
    one_or_all,
    scores,
    seeded,
    short,
    smooth_scores,
    stride,
    upstream_for,
    with_infinities,
)
from tests.machines.tolerances import allowed, largest

_OPERATORS: dict[str, Callable[..., Tensor]] = {"rank": so.soft_rank, "sort": so.soft_sort}
_PROJECTIONS = {"permutahedron": 0, "permutahedron_kl": 1}  # the field `entropic`


def recipes() -> Iterator[Recipe]:
    for operator, dtype in product(_OPERATORS, DTYPES):
        yield from _soft(operator, dtype)
        yield from _soft_uniform(operator, dtype)
        for method in _PROJECTIONS:
            yield from _projected(operator, dtype, method)
    for dtype, entropic, n in product(DTYPES, (0, 1), (1, 2, 17, 64, 1000)):
        yield later("isotonic", _isotonic, smooth_scores(n, dtype, 4), entropic)
    for dtype in DTYPES:
        ties = torch.randint(3, (4, 40), generator=seeded(0)).to(dtype)
        yield later("isotonic", _isotonic, ties, 0)
        yield later("isotonic", _isotonic, smooth_scores(LONG, dtype, 1), 0)
        yield from _placed(dtype)


def _soft(operator: str, dtype: torch.dtype) -> Iterator[Recipe]:
    forward, backward = (f"soft_{operator}_{way}" for way in ("forward", "backward"))
    for turn, n in enumerate(SIZES):
        x, descending = scores(n, dtype), turn % 2
        tau = cycled(TEMPERATURES, len(x))
        yield later(forward, _soft_forward, "bank", operator, x, tau, descending)
    for turn, n in enumerate((1, 3, 17, 64, 1000)):
        x, tau, descending = (
            smooth_scores(n, dtype),
            one_or_all(turn, (1e-3, 0.3, 30.0), 3),
            turn % 2,
        )
        yield later(forward, _soft_forward, "smooth", operator, x, tau, descending)
        yield later(backward, _soft_backward, "smooth", operator, x, tau, 1 - descending)
    rows, n = (1, LONG) if dtype == torch.float32 else MANY
    x, tau = smooth_scores(n, dtype, rows), torch.tensor([0.1], dtype=torch.float64)
    yield later(forward, _soft_forward, "threads", operator, x, tau, 1)
    yield later(backward, _soft_backward, "threads", operator, x, tau, 1)
    for n, descending in ((3, 0), (17, 1), (100, 0), (100, 1)):
        x = with_infinities(n, dtype)
        tau = cycled(MILD, len(x))
        yield later(forward, _soft_forward, "infinities", operator, x, tau, descending)


def _soft_uniform(operator: str, dtype: torch.dtype) -> Iterator[Recipe]:
    """Rows whose windows have no score at their ends, where f jumps."""
    forward, backward = (f"soft_{operator}_{way}" for way in ("forward", "backward"))
    for turn, n in enumerate((1, 17, 300, LONG if dtype == torch.float32 else 1000)):
        x, tau = smooth_scores(n, dtype, 2), one_or_all(turn, (0.0317, 3.1), 2)
        options = operator, x, tau, turn % 2, "uniform"
        yield later(forward, _soft_forward, "smooth", *options)
        if n <= 300:
            yield later(backward, _soft_backward, "smooth", *options)
    x = with_infinities(17, dtype)
    options = operator, x, cycled(MILD, len(x)), 1, "uniform"
    yield later(forward, _soft_forward, "infinities", *options)


def _soft_forward(
    about: str,
    operator: str,
    x: Tensor,
    tau: Tensor,
    descending: int,
    method: str = "laplace",
) -> Call:
    out = _answer(operator, method, x, tau, descending)
    values = _numbers(x, tau, descending, method) | {
        "scores": x,
        "out": Expected(out, x.dtype, _tolerance(f"soft {operator}", x, out, tau)),
        "values": Expected(x.sort(stable=True).values, x.dtype),
        "order": Expected(x.sort(stable=True).indices, torch.int32),
    }
    if operator == "sort":
        values["segment"] = Unchecked(tuple(x.shape), torch.int32)
        values["rest"] = values["slope"] = Unchecked(tuple(x.shape), x.dtype)
    return Call(f"soft_{operator}_forward", _label(about, x, descending, method), values)


def _soft_backward(
    about: str,
    operator: str,
    x: Tensor,
    tau: Tensor,
    descending: int,
    method: str = "laplace",
) -> Call:
    upstream = upstream_for(x, x.dtype)
    gradient = gradient_of(lambda at: _answer(operator, method, at, tau, descending), x, upstream)
    kernel = getattr(order, operator)
    saved = kernel.forward(x, tau, bool(descending), _number(method))[1:]
    column = _per_row(tau, x)
    heat = gradient_of(
        lambda at: _answer(operator, method, x, at, descending), column, upstream
    ).unsqueeze(-1)
    unit = largest(gradient, 1 / tau.expand(len(x)) if operator == "rank" else 1.0)
    tolerance = allowed(f"soft {operator} gradient", x.dtype, unit)
    scale = x.shape[-1] / column if operator == "rank" else torch.full_like(column, x.shape[-1])
    heat_tolerance = allowed(f"soft {operator} temperature", x.dtype, scale)
    values = _numbers(x, tau, descending, method) | {
        "upstream": upstream,
        "out": Expected(gradient, x.dtype, tolerance),
        "grad_temperature": Expected(heat, torch.float64, heat_tolerance),
    }
    names = ("values", "order", "segment", "rest", "slope")
    values |= dict(zip(names, (*saved, None, None, None), strict=False))
    return Call(f"soft_{operator}_backward", _label(about, x, descending, method), values)


def _placed(dtype: torch.dtype) -> Iterator[Recipe]:
    """Everybody a few places away from the right one, or at it where P has zeros."""
    for turn, n in enumerate((1, 17, 100, 1000, LONG if dtype == torch.float32 else 300)):
        x, tau = smooth_scores(n, dtype, 2), one_or_all(turn, (0.03, 3.0), 2)
        target = (x.argsort(-1).argsort(-1) + 3) % n
        yield later("placement_forward", _placed_forward, x, target, tau, turn % 2, "laplace")
        yield later("placement_backward", _placed_backward, x, target, tau, 0, "laplace")
    x, tau = smooth_scores(40, dtype, 2), one_or_all(0, (0.317, 3.1), 2)
    right = x.argsort(-1).argsort(-1)
    yield later("placement_forward", _placed_forward, x, right, tau, 0, "uniform")
    yield later("placement_backward", _placed_backward, x, right, tau, 0, "uniform")
    x = with_infinities(17, dtype)
    target = x.argsort(-1).argsort(-1)
    options = target, cycled(MILD, len(x)), 0, "laplace"
    yield later("placement_forward", _placed_forward, x, *options)


def _placed_forward(x: Tensor, target: Tensor, tau: Tensor, descending: int, method: str) -> Call:
    losses = _losses(x, target, tau, descending, method)
    values = _numbers(x, tau, descending, method) | {
        "scores": x,
        "first": target,
        "last": SameAs("first"),
        "losses": Expected(losses, torch.float64, allowed("placement", x.dtype, largest(losses))),
        "values": Expected(x.sort(stable=True).values, x.dtype),
        "order": Expected(x.sort(stable=True).indices, torch.int32),
    }
    return Call("placement_forward", _label("places", x, descending, method), values)


def _placed_backward(x: Tensor, target: Tensor, tau: Tensor, descending: int, method: str) -> Call:
    upstream, column = upstream_for(x, torch.float64), _per_row(tau, x)
    gradient = gradient_of(lambda at: _losses(at, target, tau, descending, method), x, upstream)
    heat = gradient_of(
        lambda at: _losses(x, target, at, descending, method), column, upstream
    ).unsqueeze(-1)
    values, order = x.sort(stable=True)
    tolerance = allowed("placement gradient", x.dtype, largest(gradient, 1 / column))
    heat_tolerance = allowed("placement temperature", x.dtype, x.shape[-1] / column)
    fields = _numbers(x, tau, descending, method) | {
        "scores": x,
        "first": target,
        "last": SameAs("first"),
        "upstream": upstream,
        "values": values,
        "order": order.int(),
        "gradient": Expected(gradient, x.dtype, tolerance),
        "grad_temperature": Expected(heat, torch.float64, heat_tolerance),
    }
    return Call("placement_backward", _label("places", x, descending, method), fields)


def _losses(x: Tensor, target: Tensor, tau: Tensor, descending: int, method: str) -> Tensor:
    """By plain torch, in float64."""
    with _native.use("torch"):
        return so.losses.permutation_cross_entropy(
            x.double(),
            target,
            temperature=_per_row(tau, x),
            method=method,
            descending=bool(descending),
            reduction="none",
        )


def _projected(operator: str, dtype: torch.dtype, method: str) -> Iterator[Recipe]:
    forward, backward = (f"projected_{operator}_{way}" for way in ("forward", "backward"))
    for turn, n in enumerate((1, 17, 64, 1000)):
        x, descending = smooth_scores(n, dtype), turn // 2
        options = method, x, one_or_all(turn, (0.03, 1.0, 30.0), len(x)), descending
        yield later(forward, _projected_forward, "smooth", operator, *options)
        yield later(backward, _projected_backward, "smooth", operator, *options)
    rows, n = (1, LONG) if dtype == torch.float32 else MANY
    options = method, smooth_scores(n, dtype, rows), torch.tensor([1.0], dtype=torch.float64), 1
    yield later(forward, _projected_forward, "threads", operator, *options)
    yield later(backward, _projected_backward, "threads", operator, *options)
    for n, descending in ((3, 0), (65, 1)):
        x = with_infinities(n, dtype)
        options = method, x, cycled(MILD, len(x)), descending
        yield later(forward, _projected_forward, "infinities", operator, *options)


def _projected_forward(
    about: str, operator: str, method: str, x: Tensor, tau: Tensor, descending: int
) -> Call:
    out = _answer(operator, method, x, tau, descending)
    values = _numbers(x, tau, descending) | {
        "scores": x,
        "out": Expected(out, x.dtype, allowed("projection", x.dtype, largest(out))),
        "values": Unchecked(tuple(x.shape), x.dtype),
        "order": Unchecked(tuple(x.shape), torch.int32),
        "starts": Unchecked(tuple(x.shape), torch.int32),
        "entropic": _PROJECTIONS[method],
    }
    return Call(f"projected_{operator}_forward", _label(about, x, descending, method), values)


def _projected_backward(
    about: str, operator: str, method: str, x: Tensor, tau: Tensor, descending: int
) -> Call:
    upstream, entropic = upstream_for(x, x.dtype), _PROJECTIONS[method]
    gradient = gradient_of(lambda at: _answer(operator, method, at, tau, descending), x, upstream)
    kernel = getattr(permutahedron, operator)
    result, *saved = kernel.forward(x, tau, bool(descending), bool(entropic))
    tolerance = allowed("projection gradient", x.dtype, largest(gradient))
    values = _numbers(x, tau, descending) | {
        "upstream": upstream,
        "out": Expected(gradient, x.dtype, tolerance),
        **dict(zip(("values", "order", "starts"), saved, strict=True)),
        "ranks": result if operator == "rank" and entropic else None,
        "entropic": entropic,
    }
    return Call(f"projected_{operator}_backward", _label(about, x, descending, method), values)


def _isotonic(x: Tensor, entropic: int) -> Call:
    s, w = x, x.flip(-1).sort(descending=True).values / 3
    with _native.use("torch"):
        first = isotonic.blocks(s.double(), w.double(), "kl" if entropic else "l2")
    rows, n = x.shape
    values: dict[str, Value] = {
        "s": s,
        "w": w,
        "first": Expected(first, torch.int64),
        "rows": rows,
        "n": n,
        "entropic": entropic,
        "wide": is_wide(x.dtype),
    }
    return Call("isotonic", f"{short(x.dtype)} entropic={entropic} n={n}", values)


def _answer(operator: str, method: str, x: Tensor, tau: Tensor, descending: int) -> Tensor:
    """By plain torch, in float64."""
    with _native.use("torch"):
        options = {"method": method, "descending": bool(descending)}
        return _OPERATORS[operator](x.double(), temperature=_per_row(tau, x), **options)


def _per_row(tau: Tensor, x: Tensor) -> Tensor:
    return tau.expand(len(x))


def _tolerance(answer: str, x: Tensor, out: Tensor, tau: Tensor) -> Tensor:
    least = 1.0 if answer == "soft rank" else _per_row(tau, x)
    return allowed(answer, x.dtype, largest(out, least))


def _numbers(
    x: Tensor, tau: Tensor, descending: int, method: str | None = None
) -> dict[str, Value]:
    rows, n = x.shape
    density: dict[str, Value] = {} if method is None else {"density": _number(method)}
    return density | {
        "temperature": tau,
        "rows": rows,
        "n": n,
        "temperature_stride": stride(tau, rows),
        "descending": descending,
        "wide": is_wide(x.dtype),
    }


def _number(method: str) -> int:
    return number_of(BUILT_IN[method])


def _label(about: str, x: Tensor, descending: int, method: str = "laplace") -> str:
    order = "descending" if descending else "ascending"
    return f"{method} {short(x.dtype)} {about} {order} n={x.shape[-1]}"
