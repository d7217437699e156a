"""Calls of the F-sums and of their inverse."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor

from softorder.densities import BUILT_IN
from softorder.kernels import _native, fsum
from tests.machines.calls import Call, Expected, Recipe, SameAs, Unchecked, Value, later
from tests.machines.rows import (
    DTYPES,
    LONG,
    MANY,
    MILD,
    TEMPERATURES,
    cycled,
    is_wide,
    one_or_all,
    scores,
    short,
    smooth_scores,
    stride,
    upstream_for,
)
from tests.machines.tolerances import allowed, largest

_DENSITIES = ("laplace", "uniform")  # those that take one walk
_SMOOTH = ("logistic", "normal", "cauchy")  # those that are cut into boxes
_ORDERS = [(a, m) for a in range(4) for m in range(a + 1)]  # derivative, moment
_FAMILIES = ("normal", "exponential", "two_modes", "cauchy", "ties")


def recipes() -> Iterator[Recipe]:
    for density, dtype in product(_DENSITIES, DTYPES):
        for turn, n in enumerate((1, 2, 17, 64, 100, 1000)):
            x = scores(n, dtype, _FAMILIES).sort().values
            problem = _Sum(
                density, x, x, one_or_all(turn, TEMPERATURES, len(x)), about=f"ranks n={n}"
            )
            yield later("fsum", problem.call)
        orders = _ORDERS if density == "laplace" else _ORDERS[:3]  # a jump has no derivative
        for turn, (derivative, moment) in enumerate(orders):
            sources = smooth_scores(50 + turn, dtype).sort().values
            targets = smooth_scores(33 - turn, dtype).sort().values
            problem = _Sum(
                density,
                sources,
                targets,
                cycled(MILD, 3),
                weights=upstream_for(sources, dtype) if turn % 2 else None,
                counts=torch.tensor([40, 0, 13]) if turn % 3 == 0 else None,
                rests=turn % 4 == 1,
                derivative=derivative,
                moment=moment,
                about="sums",
            )
            yield later("fsum", problem.call)
        for turn, n in enumerate((1, 2, 3, 17, 65, 300)):
            x = scores(n, dtype, _FAMILIES).sort().values
            levels = torch.arange(n, dtype=torch.float64) + 0.5
            tau = one_or_all(turn, (1e-3, 1.0, 1e3), len(x))
            yield later("fsum_invert", _invert, f"halves n={n}", density, x, levels, tau)
        x, (rows, n) = smooth_scores(LONG, dtype, 1).sort().values, MANY
        problem = _Sum(density, x, x, torch.tensor([0.01]).double(), about=f"threads n={LONG}")
        yield later("fsum", problem.call)
        x = smooth_scores(n, dtype, rows).sort().values
        levels = torch.arange(n, dtype=torch.float64) + 0.5
        about = f"threads n={n}"
        yield later("fsum_invert", _invert, about, density, x, levels, cycled(MILD, rows))
        for n in (2, 100):
            x = smooth_scores(n, dtype).sort().values
            levels = torch.arange(n + 1, dtype=torch.float64).expand(3, -1)
            tau = cycled(MILD, 3)
            yield later("fsum_invert", _invert, f"places n={n}", density, x, levels, tau)
            count = torch.tensor([n, n - 1, n // 2])
            levels = torch.linspace(-0.3, n + 0.2, 7, dtype=torch.float64).expand(3, -1)
            yield later("fsum_invert", _invert, f"counts n={n}", density, x, levels, tau, count)
    yield from _by_boxes()


def _by_boxes() -> Iterator[Recipe]:
    """Rows of few pairs, of many within a τ, and of many in a sparse row."""
    for (turn, density), dtype in product(enumerate(_SMOOTH), DTYPES):
        for n in (17, 100, 1000):
            x = scores(n, dtype, _FAMILIES).sort().values
            tau = one_or_all(n % 2, (1e-3, 0.1, 10.0), len(x))
            yield later("fsum", _Sum(density, x, x, tau, about=f"ranks n={n}").call)
        for derivative, moment in _ORDERS[1:]:
            x, t = (smooth_scores(n, dtype).sort().values for n in (700 + moment, 500))
            weights = upstream_for(x, dtype).abs()
            problem = _Sum(
                density,
                x,
                t,
                cycled(MILD, 3, turn),
                weights=weights,
                counts=torch.tensor([600, 0, 333]) if moment == 1 else None,
                rests=moment == 0,
                derivative=derivative,
                moment=moment,
                about="sums",
            )
            yield later("fsum", problem.call)
        for n, temperatures in ((3, MILD), (65, MILD), (600, (1e-2, 1.0, 100.0))):
            x = smooth_scores(n, dtype).sort().values
            levels = torch.arange(n, dtype=torch.float64) + 0.5
            tau = cycled(temperatures, 3, turn)
            yield later("fsum_invert", _invert, f"halves n={n}", density, x, levels, tau)


class _Sum:
    """One F-sum. The rests, if any, are small: half a unit of the last place."""

    def __init__(
        self,
        density: str,
        sources: Tensor,
        targets: Tensor,
        tau: Tensor,
        *,
        about: str,
        weights: Tensor | None = None,
        counts: Tensor | None = None,
        rests: bool = False,
        derivative: int = 0,
        moment: int = 0,
    ) -> None:
        self.density, self.sources, self.targets, self.tau = density, sources, targets, tau
        self.weights, self.counts = weights, counts
        self.orders = {"derivative": derivative, "moment": moment}
        self.source_rest, self.target_rest = (
            v * (torch.finfo(v.dtype).eps / 2) if rests else None for v in (sources, targets)
        )
        self.about = f"{density} {short(sources.dtype)} {about} {derivative} {moment}"

    def _answer(self) -> Tensor:
        double = [
            None if v is None else v.double()
            for v in (self.sources, self.targets, self.weights, self.source_rest, self.target_rest)
        ]
        sources, targets, weights, source_rest, target_rest = double
        options = {
            "source_rest": source_rest,
            "target_rest": target_rest,
            "source_count": self.counts,
            "target_count": None if self.counts is None else self.counts // 2,
        }
        with _native.use("torch"):
            return fsum.fsum(
                sources, targets, weights, self.tau, self.density, **self.orders, **options
            )

    def call(self) -> Call:
        rows, dtype, same = len(self.sources), self.sources.dtype, self.targets is self.sources
        out = self._answer()
        steep = self.density in _SMOOTH and self.orders["derivative"] == 3
        tolerance = allowed("fsum of f''" if steep else "fsum", dtype, largest(out, 1.0))
        values: dict[str, Value] = {
            "sources": self.sources,
            "source_rest": self.source_rest,
            "targets": SameAs("sources") if same else self.targets,
            "target_rest": self.target_rest,
            "weights": self.weights,
            "temperature": self.tau,
            "source_count": self.counts,
            "target_count": None if self.counts is None else self.counts // 2,
            "out": Expected(out, dtype, tolerance),
            "rows": rows,
            "m": self.sources.shape[-1],
            "n": self.targets.shape[-1],
            "temperature_stride": stride(self.tau, rows),
            "source_count_stride": int(self.counts is not None),
            "target_count_stride": int(self.counts is not None),
            "density": list(BUILT_IN).index(self.density),
            "wide": is_wide(dtype),
            **self.orders,
        }
        return Call("fsum", self.about, values)


def _invert(
    about: str,
    density: str,
    x: Tensor,
    levels: Tensor,
    tau: Tensor,
    count: Tensor | None = None,
) -> Call:
    """Levels (n,) serve every row, levels (rows, n) one each."""
    (rows, m), n = x.shape, levels.shape[-1]
    with _native.use("torch"):
        centre, rest = fsum.invert(x.double(), levels, tau, density, count=count)
    roots = torch.where(centre.isfinite(), centre + rest, centre)
    unit = largest(roots, tau.expand(rows))
    values: dict[str, Value] = {
        "sources": x,
        "levels": levels,
        "temperature": tau,
        "count": count,
        "centre": Expected(roots, x.dtype, allowed("fsum root", x.dtype, unit), partner="rest"),
        "rest": Unchecked((rows, n), x.dtype),
        "rows": rows,
        "m": m,
        "n": n,
        "level_stride": n if levels.dim() > 1 else 0,
        "temperature_stride": stride(tau, rows),
        "count_stride": int(count is not None),
        "density": list(BUILT_IN).index(density),
        "wide": is_wide(x.dtype),
    }
    return Call("fsum_invert", f"{density} {short(x.dtype)} {about}", values)
