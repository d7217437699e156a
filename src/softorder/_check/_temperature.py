"""The temperature, with the scores it belongs to and alone."""

from __future__ import annotations

import math

from torch import Tensor

from softorder._check import _values
from softorder._check._mode import eager
from softorder._check._values import PerRow, extremes, first, is_number


def temperature(temperature: PerRow, scores: Tensor, dim: int) -> None:
    """`temperature` is a finite number > 0, or a tensor of them that broadcasts over the rows."""
    if not isinstance(temperature, Tensor):
        return temperature_alone(temperature)
    _values.per_row("temperature", temperature, scores, dim)
    if not eager() or temperature.numel() == 0:
        return
    low, high = extremes(temperature)
    if not (low > 0 and high < math.inf):
        wrong = ~((temperature > 0) & temperature.isfinite())
        raise ValueError(_range(first(temperature, wrong)))


def temperature_alone(temperature: PerRow) -> None:
    """`temperature` as far as it can be judged before any scores are seen."""
    if is_number("temperature", temperature) and not 0 < temperature < math.inf:
        raise ValueError(_range(temperature))


def _range(given: PerRow) -> str:
    return f"temperature must be finite and > 0, but got {given}"
