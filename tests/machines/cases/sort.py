"""Calls of the sort kernel: bit for bit what a stable sort gives, in every float format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from tests.machines.calls import FORMATS, Call, Expected, Recipe, later
from tests.machines.rows import LONG, SIZES, scores, seeded, short, with_infinities

_FAMILIES = ("normal", "ties", "geometric", "shifted")


def recipes() -> Iterator[Recipe]:
    for dtype, n in product(FORMATS[:4], SIZES):
        yield later("sort", _sort, f"bank n={n}", scores(n, torch.float64, _FAMILIES).to(dtype))
    for dtype, n in product(FORMATS[:4], (3, 300)):
        x = torch.cat([with_infinities(n, dtype), _anything(n, dtype)])
        yield later("sort", _sort, f"infinities, NaN and zeros n={n}", x)
    for dtype in FORMATS[:4]:
        x = scores(LONG, torch.float64, ("normal",)).to(dtype)
        yield later("sort", _sort, f"threads n={LONG}", x)


def _anything(n: int, dtype: torch.dtype) -> Tensor:
    """Few values, several NaN, infinities and zeros of both signs among them."""
    few = torch.tensor([math.nan, -math.inf, -1.5, -0.0, 0.0, 1.5, math.inf], dtype=dtype)
    return few[torch.randint(len(few), (2, n), generator=seeded(n))]


def _sort(about: str, x: Tensor) -> Call:
    values, order = torch.sort(x, stable=True)
    rows, n = x.shape
    fields = {
        "scores": x,
        "values": Expected(values, x.dtype),
        "order": Expected(order, torch.int64),
        "rows": rows,
        "n": n,
        "format": FORMATS.index(x.dtype),
    }
    return Call("sort", f"{short(x.dtype)} {about}", fields)
