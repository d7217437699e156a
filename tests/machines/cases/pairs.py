"""Calls of the kernel for the pairs of lists."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from softorder.kernels.pairs import Weighing
from softorder.kernels.pairs.reference import pair_sums
from tests.machines.calls import Call, Expected, Recipe, later
from tests.machines.rows import DTYPES, is_wide, seeded, short
from tests.machines.tolerances import allowed

_ROWS = 3


def recipes() -> Iterator[Recipe]:
    for dtype, n, weighing in product(DTYPES, (1, 2, 9, 64, 300), Weighing):
        for hinge in (False, True):
            yield later("pairs", _pairs, dtype, n, weighing, hinge)


def _pairs(dtype: torch.dtype, n: int, weighing: Weighing, hinge: bool) -> Call:
    lists = problem(dtype, n)
    first = max(1, n // 3)
    wide = (value.double() for value in lists)
    found, gradient = pair_sums(*wide, weighing, first, hinge, True)
    sums = allowed("pairs", dtype, found.amax(-1))
    values = dict(zip(("x", "grades", "own", "scores", "discount", "bound"), lists, strict=True))
    numbers = {"rows": _ROWS, "n": n, "first": first, "weighing": int(weighing)}
    numbers |= {"hinge": int(hinge), "wide": is_wide(dtype)}
    slopes = allowed("pairs gradient", dtype, gradient.abs().amax(-1))
    answers = {
        "found": Expected(found, torch.float64, sums),
        "gradient": Expected(gradient, dtype, slopes),
    }
    label = f"{short(dtype)} {weighing.name} hinge={int(hinge)} n={n}"
    return Call("pairs", label, values | numbers | answers)


def problem(dtype: torch.dtype, n: int) -> tuple[Tensor, ...]:
    """Lists with equal scores, some places of the second without an element, and tables."""
    scores = torch.randn(_ROWS, n, dtype=torch.float64, generator=seeded(n)).to(dtype)
    grades = torch.randint(5, (_ROWS, n), generator=seeded(n + 1)).to(dtype)
    scores[0, n // 2 :] = scores[0, n // 2].clone()
    grades[1, : n // 3], scores[1, : n // 3] = -math.inf, -math.inf
    own = torch.where(grades > 0, torch.exp2(grades), 0.5)
    x = torch.where(scores > -math.inf, 2 * scores, 0.0)
    discount = 1 / torch.log2(2 + torch.arange(n + 1, dtype=torch.float64))
    bound = discount.roll(1) - discount
    return x, grades, own, scores, discount[:n].to(dtype), bound[:n].to(dtype)
