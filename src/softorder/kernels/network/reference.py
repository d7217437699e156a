"""Soft comparator networks in plain torch, differentiable, a layer at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import _autograd
from softorder.kernels._operators import no_gradient
from softorder.kernels.formulas import at_hand, factor_for, multiplied, with_gradient_of
from softorder.kernels.network import layers
from softorder.kernels.network.program import program
from softorder.kernels.network.wires import Wires
from softorder.kernels.sort.completion import Completion


def output(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> Tensor:
    """The first k values (..., k), or the matrix (..., k, n) that maps scores to them."""
    through = _rows if matrix else _values
    if _check.known_finite(scores):
        return through(scores, None, temperature, descending, kind, comparator, k)
    exceptions = Completion.of(scores, descending)
    wires = Wires(exceptions.only_finite(scores), exceptions.live)
    settings = temperature, descending, kind, comparator, k
    result = through(wires.scores, wires.count, *settings)
    if matrix:
        return exceptions.complete_rows(wires.to_origin(result))
    return exceptions.complete_values(result)


def run(
    scores: Tensor,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor]:
    """The operator."""
    return (output(scores, temperature, descending, kind, comparator, k, matrix),)


def vjp(
    upstream: Tensor,
    kept: Sequence[Tensor],
    temperature: Tensor,
    descending: bool,
    by_temperature: bool,
    kind: str | None,
    comparator: str,
    k: int,
    matrix: bool,
) -> tuple[Tensor, Tensor]:
    def result(scores: Tensor) -> Tensor:
        return output(scores, temperature, descending, kind, comparator, k, matrix)

    (by_scores,) = _autograd.vjp(result, kept, upstream)
    return by_scores, no_gradient(by_scores)


_SQUARABLE = 1e18  # in float32: the gradient of τ has products of two scores


def _values(
    x: Tensor,
    count: Tensor | None,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
) -> Tensor:
    plan = program(x.shape[-1], k, kind, x.device)
    most = x.detach().abs().amax(-1, keepdim=True)
    if x.dtype is not torch.float64 and at_hand(most) and bool((most > _SQUARABLE).any()):
        settings = temperature, descending, kind, comparator, k
        return _values(x.double(), count, *settings).to(x.dtype)
    factor = factor_for(most)
    if factor is not None:
        x, temperature = (
            with_gradient_of(factor * x, x),
            with_gradient_of(multiplied(temperature, factor), temperature),
        )
    start, values = layers.wires_first(x, descending)
    values, _ = layers.forward(plan, values, comparator, count, temperature)
    t = values.index_select(0, plan.outputs).movedim(0, -1)
    t = start + (-t if descending else t)
    return t if factor is None else with_gradient_of(t / factor, t)


def _rows(
    x: Tensor,
    count: Tensor | None,
    temperature: Tensor,
    descending: bool,
    kind: str | None,
    comparator: str,
    k: int,
) -> Tensor:
    """Values in float64: steep comparators enlarge their rounding errors, not those of the rows."""
    plan = program(x.shape[-1], k, kind, x.device)
    wide = x.double()
    factor = factor_for(wide.detach().abs().amax(-1, keepdim=True))
    if factor is not None:
        wide, temperature = factor * wide, multiplied(temperature, factor)
    _, values = layers.wires_first(wide, descending)
    values, kept = layers.forward(plan, values, comparator, count, temperature)
    kept = [keep.to(x.dtype) for keep in kept]
    like = values.clamp(-1, 1).to(x.dtype)  # they count by 0, and may be too large
    return layers.back_to_front(plan, like, kept).movedim(0, -1)
