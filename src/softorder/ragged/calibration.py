"""Temperatures for a stated softness, of rows of different lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from softorder import _check
from softorder._auto import Temperature, settings, wanted
from softorder.densities import Density
from softorder.kernels.ragged import Segments
from softorder.kernels.shards import WHOLE
from softorder.ops import calibration
from softorder.ragged import hard, soft
from softorder.ragged._rows import Number, Rows


def calibrate_temperature(
    values: Tensor,
    offsets: Tensor,
    k: float | Tensor | None = None,
    *,
    softness: float = 0.1,
    method: str | Density | object = "laplace",
    largest: bool = True,
    mask: Tensor | None = None,
    shared: bool = False,
    differentiable: bool = False,
) -> Tensor:
    """`so.calibrate_temperature` of every row, (rows,), or one number if shared.

    Values, offsets, k and mask are those of `so.ragged.soft_topk`, the others those of
    `so.calibrate_temperature`; without a k the method has to serve soft_rank. Nothing is padded
    where the operator itself pads nothing.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([3.0, 1.0, 2.0, 50.0, 40.0]), torch.tensor([0, 3, 3, 5])
    >>> so.ragged.calibrate_temperature(values, offsets, 1).numpy().round(3)
    array([0.247, 1.   , 2.171])
    """
    return calibrated(
        values,
        offsets,
        k,
        method=method,
        largest=largest,
        mask=mask,
        softness=softness,
        shared=shared,
        differentiable=differentiable,
    )


def calibrated(
    values: Tensor,
    offsets: Tensor,
    k: Number | None,
    *,
    method: object,
    largest: bool = True,
    mask: Tensor | None = None,
    softness: float,
    shared: bool,
    differentiable: bool,
    rough: bool = False,
) -> Tensor:
    """The same; if `rough`, to six digits."""
    _check.flag("largest", largest)
    _check.flag("shared", shared)
    _check.flag("differentiable", differentiable)
    _check.between("softness", softness)
    _check.ragged.rows(values, offsets, mask)
    given = values if differentiable else values.detach()
    rows = Rows.checked(given if largest else -given, offsets, mask)
    if k is not None:
        _check.k_below(k, rows.columns, -1)
    decision = _order(rows, method) if k is None else _choice(rows, k, method)
    aim = softness, shared, rough, differentiable
    return calibration.temperatures_of(decision, method, *aim)


def of_rows(temperature: Temperature, rows: Rows, k: Number | None, method: object) -> Number:
    """The temperature of a call: a number as it is, "auto" as the scores have it."""
    if not wanted(temperature):
        return temperature  # type: ignore[return-value]
    auto = settings(temperature)
    options = calibration.options_of(auto)
    return auto.keep(calibrated(rows.values, rows.offsets, k, method=method, **options))


@dataclass(frozen=True)
class _Decision(calibration.Decision):
    """What is to be decided of rows one behind another."""

    segments: Segments

    def sum(self, values: Tensor) -> Tensor:
        return self.segments.add_up(values)

    def range(self) -> Tensor:
        ends = calibration.finite_ends(self.x.detach())
        top, bottom = (self.segments.largest(end) for end in ends)
        return torch.where(self.open, top + bottom, 1.0)


def _finite(rows: Rows) -> tuple[Tensor, Segments, Tensor, Tensor]:
    """Scores in float64 that something is to be decided of; how many are certain; NaN."""
    x, segments = rows.values.double(), rows.segments
    spoiled = segments.add_up(x.isnan().double()) > 0
    certain = x == math.inf
    x = torch.where(certain | segments.spread(spoiled), -math.inf, x)
    return x, segments, segments.add_up(certain.double()), spoiled


def _choice(rows: Rows, k: Number, method: object) -> _Decision:
    x, segments, certain, spoiled = _finite(rows)
    present = segments.add_up((x > -math.inf).double())
    count = (rows.number(k).detach() - certain).clamp(min=0).minimum(present)
    chosen = hard.topk(x.detach(), rows.offsets, count)
    most = segments.add_up(chosen * chosen) - count * count / present.clamp(min=1)

    def p(x: Tensor, temperature: Tensor) -> Tensor:
        return soft.soft_topk(x, rows.offsets, count, method=method, temperature=temperature)

    found = x, p, chosen, chosen, most, most > 1e-9 * count, spoiled, WHOLE, WHOLE, segments
    return _Decision(*found)


def _order(rows: Rows, method: object) -> _Decision:
    x, segments, _, spoiled = _finite(rows)
    there = x > -math.inf
    present = segments.spread(segments.add_up(there.double()))
    ranks = hard.rank(x.detach(), rows.offsets)
    weights = torch.where(there, ranks - (present + 1) / 2, 0.0)
    most = segments.add_up(weights * weights)

    def places(x: Tensor, temperature: Tensor) -> Tensor:
        return soft.soft_rank(x, rows.offsets, method=method, temperature=temperature)

    return _Decision(x, places, ranks, weights, most, most > 0, spoiled, WHOLE, WHOLE, segments)
