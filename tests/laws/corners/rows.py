"""Rows of scores that lie in a corner, and those that they are compared with."""

import math
from dataclasses import dataclass, replace

import torch

_FAR = 1e5  # where +inf is compared with a finite score, in units of τ


@dataclass(frozen=True)
class Row:
    corner: str
    scores: tuple
    k: float = 2.3
    temperature: float = 1.0

    @property
    def absent(self):
        """The place of the score that takes no part, if one does."""
        return next((i for i, x in enumerate(self.scores) if x == -math.inf), None)

    def twin(self):
        """The row whose answer a promise names, if it names one."""
        if self.corner == "minus_infinity":
            return replace(self, scores=self.scores[: self.absent] + self.scores[self.absent + 1 :])
        if self.corner == "plus_infinity":
            far = _FAR * self.temperature
            return replace(self, scores=tuple(far if x == math.inf else x for x in self.scores))
        if self.corner == "denormal":
            return replace(self, scores=(0.0,) * len(self.scores))
        return None


def rows(dtype):
    """Of every corner, in the range of a format."""
    finfo = torch.finfo(dtype)
    # 1/τ² has to be a number where second derivatives have to be.
    cold, warm = (1e-30, 1e30) if dtype is torch.float64 else (1e-12, 1e12)
    most, least = finfo.max, finfo.smallest_normal
    x = (0.3, -1.1, 2.0, 0.9, -0.4)
    return (
        Row("nan", (0.3, math.nan, 2.0, 0.9, -0.4)),
        Row("nan", (math.nan, math.inf, -math.inf, 0.9, -0.4)),
        Row("nan", (math.nan,) * 5, k=5.0),
        Row("minus_infinity", (0.3, -1.1, -math.inf, 0.9, -0.4), k=2.37),
        Row("plus_infinity", (0.3, math.inf, 2.0, 0.9, -0.4)),
        Row("largest", (0.1 * most, most, -most, 0.5 * most, -0.25 * most)),
        Row(
            "largest", (0.1 * most, most, -most, 0.5 * most, -0.25 * most), k=2.0, temperature=1e-3
        ),
        Row("largest", (most, most, -most, 0.1 * most, -most)),
        Row("denormal", tuple(least * v / 16 for v in (-3.0, -2.0, 0.0, 1.0, 5.0))),
        Row("cold", x, k=2.0, temperature=cold),
        Row("cold", x, temperature=cold),
        Row("warm", x, temperature=warm),
        Row("nothing", x, k=0.0),
        Row("everything", x, k=5.0),
        Row("gap", (0.1, 100.0, 100.3, 0.4, -0.2), k=2.0),
        Row("gap", (0.1, 1e4, 1e4 + 0.3, 0.4, -0.2), k=2.0),
    )
