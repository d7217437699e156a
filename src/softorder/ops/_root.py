"""The root of a function of one number for each row, found by values alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _check

_STRIDE = 2.0  # the first step is not longer; the next may be twice as long
_FAR = 16.0  # values beyond are not told apart: a step beside such a point is not taken for small


class Root(NamedTuple):
    place: Tensor
    value: Tensor  #: that was seen last, next to it


def root(
    rise: Callable[[Tensor], Tensor],
    start: Tensor,
    low: Tensor,
    high: Tensor,
    going: Tensor,
    tolerance: float,
    most: int,
) -> Root:
    """t between low and high where `rise`, whose slope is about 1, passes from below 0 to above it.

    By secants through the last two points, in at most so many steps. Where there have been points
    on both sides, the root stays between the nearest two; a secant that leads out of these, or
    three that have not halved their distance, are followed by their middle. Rows that are not
    `going`, or not any more, stay where they are, whatever the others do.
    """
    t, below, above = start, *(torch.full_like(start, end) for end in (-math.inf, math.inf))
    last, stride, widths = start - 1, _STRIDE, [above] * 3
    before: Tensor | None = None
    for _ in range(most):
        value = rise(t).clamp(-_FAR, _FAR)
        before = value - 1 if before is None else before
        positive = value > 0
        below, above = torch.where(positive, below, t), torch.where(positive, t, above)
        to = t + value * (t - last) / (before - value)
        narrow = above - below
        apt = (to >= below) & (to <= above) & (narrow <= widths[0])
        to = torch.where(apt, to, 0.5 * (below + above))
        step = (to - t).clamp(-stride, stride)
        done = step.abs() <= tolerance
        last, before, stride = t, value, 2 * stride
        widths = [*widths[1:], 0.5 * narrow]
        t = torch.where(going, torch.minimum(torch.maximum(t + step, low), high), t)
        going = going & ~done
        if _check.at_hand(going) and not going.any():
            break
    return Root(t, value)
