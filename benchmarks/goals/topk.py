"""Soft top-k against softmax, and against itself: formats, another dim, a k for each row, masks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor

import softorder as so
from benchmarks import cases
from benchmarks.cases import ROUTER, Case, Shape, normal_scores
from benchmarks.goals.goal import Goal, Side
from benchmarks.providers import DENSITIES

SHAPES = cases.SHAPES[:-1]  # ten million scores would take the time of all others
TEMPERATURES = (1.0, 0.1, 0.01)
FORWARD = {"laplace": 2.0, "logistic": 2.0, "uniform": 2.0, "normal": 2.5, "cauchy": 3.0}
BACKWARD = 1.8
_PASSES = {False: "forward", True: "forward + backward"}
_FORMATS = {"float16": torch.float16, "bfloat16": torch.bfloat16}
_LONG, _SHORT = Shape(128, 10_450), Shape(128, 1_000)
_ORDERS = {"soft_rank": so.soft_rank, "soft_sort": so.soft_sort}


def goals(shapes: tuple[Shape, ...] = SHAPES) -> Iterator[Goal]:
    yield from _against_softmax(shapes)
    for backward in _PASSES:
        yield from _formats(backward)
        yield from _middle(backward)
        yield from _per_row(backward)


def _against_softmax(shapes: tuple[Shape, ...]) -> Iterator[Goal]:
    for backward, shape in product(_PASSES, shapes):
        for k, tau in product((8, shape.n // 10, shape.n // 2), TEMPERATURES):
            case = Case(shape, k, tau)
            theirs = Side("torch.softmax", _softmax, case.scores, backward)
            for density in DENSITIES:
                ours = Side(f"softorder {density}", _topk(density, k, tau), case.scores, backward)
                limit = BACKWARD if backward else FORWARD.get(density)
                table = f"soft_topk, {_PASSES[backward]}, × torch.softmax, worst k and τ"
                section = "topk-backward" if backward else "topk"
                yield Goal(section, table, f"{shape} {density}", str(case), ours, theirs, limit)


def _softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def _topk(density: str, k: float | Tensor, tau: float, **more: Any) -> Callable[[Tensor], Tensor]:
    return lambda x: so.soft_topk(x, k, method=density, temperature=tau, **more)


def _operators(shape: Shape, **more: Any) -> Iterator[tuple[str, Callable[[Tensor], Tensor]]]:
    """Soft top-k of every density, rank and sort."""
    for density in DENSITIES:
        yield f"soft_topk {density}", _topk(density, shape.n // 10, 0.1, **more)
    for name, function in _ORDERS.items():
        yield f"{name} laplace", partial(function, temperature=0.1, **more)


def _formats(backward: bool) -> Iterator[Goal]:
    """float16 and bfloat16 are computed in float32, from half the bytes."""
    for name, operator in _operators(_LONG):
        usual = Side("softorder float32", operator, partial(normal_scores, _LONG), backward)
        for word, dtype in _FORMATS.items():
            ours = replace(usual, name=f"softorder {word}", inputs=partial(_in, dtype, _LONG))
            row = f"{name}, {word}, {_PASSES[backward]}"
            case = f"{name} {_LONG} {_PASSES[backward]}"
            table = f"float16 and bfloat16, {_LONG}, × float32"
            yield Goal("formats", table, row, case, ours, usual, 1.2)


def _in(dtype: torch.dtype, shape: Shape) -> Tensor:
    return normal_scores(shape).to(dtype)


def _middle(backward: bool) -> Iterator[Goal]:
    """(8, n, 16) along n against as many rows of n."""
    last = dict(_operators(_SHORT))
    for name, operator in _operators(_SHORT, dim=1):
        usual = Side("softorder last dim", last[name], partial(normal_scores, _SHORT), backward)
        ours = Side("softorder middle dim", operator, _between, backward)
        row, table = f"{name}, {_PASSES[backward]}", "A middle dim, 8×1,000×16, × the last one"
        yield Goal("dim", table, row, row, ours, usual, 1.5)


def _between() -> Tensor:
    return normal_scores(_SHORT).view(8, 16, _SHORT.n).mT.contiguous()


def _per_row(backward: bool) -> Iterator[Goal]:
    for shape, density in product((ROUTER, _SHORT), DENSITIES):
        k, inputs = shape.n // 10, partial(normal_scores, shape)
        usual = Side("softorder", _topk(density, k, 0.1), inputs, backward)
        mask = normal_scores(shape) > -1.3  # nine of ten take part
        variants = {
            "a k for each row": _topk(density, torch.full((shape.rows,), k), 0.1),
            "a mask": _topk(density, k, 0.1, mask=mask),
        }
        for what, operator in variants.items():
            ours = Side(f"softorder, {what}", operator, inputs, backward)
            row = f"{shape} {density}, {_PASSES[backward]}"
            yield Goal("rows", f"{what.capitalize()}, × without", row, row, ours, usual, 1.2)
