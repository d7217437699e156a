"""fsum and fsum_inverse on rows of different lengths."""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from softorder import _check, ops
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.kernels.ragged import Bucket, sums_serve
from softorder.ops._method import method_of
from softorder.ragged._rows import Number, Rows, of
from softorder.ragged.soft import checked_rows, points_of
from softorder.relaxations import FSumMethod
from softorder.relaxations.points import few


def fsum(
    values: Tensor,
    offsets: Tensor,
    points: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    mask: Tensor | None = None,
) -> Tensor:
    """`so.fsum` of every row at its points: (rows, m) for points (m,) of all rows, or (rows, m).

    Values, offsets, temperature and mask are those of `so.ragged.soft_topk`, the others those of
    `so.fsum`. Densities take the rows where they are: up to four points O(total) each, and for more
    of them a sort; where the kernels are not compiled rows are padded in buckets then.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([1.0, 2.0, 4.0, 0.0, 3.0]), torch.tensor([0, 3, 3, 5])
    >>> so.ragged.fsum(values, offsets, torch.tensor([0.0, 2.5]), temperature=0.1).numpy().round(3)
    array([[0.   , 1.997],
           [0.   , 0.   ],
           [0.5  , 1.003]], dtype=float32)
    """
    rows, tau = checked_rows(values, offsets, method, temperature, mask)
    _check.fsums.points(points, rows.columns, -1)
    served = method_of("fsum", method)
    assert isinstance(served, FSumMethod)
    t = points.to(values.device).expand(rows.count, points.shape[-1])
    number = rows.number(tau)
    if few(t) and values.shape[0]:
        found = _sums(rows, t.double(), number, served.density)
    elif _compiled(rows, served, number):
        wide = rows.wide()
        found = served.segments_fsum(wide, number, rows.offsets, t.to(wide.dtype))
    else:
        found = rows.per_row(partial(_padded, ops.fsum, t, method, tau))
    return found.to(values.dtype)


def fsum_inverse(
    values: Tensor,
    offsets: Tensor,
    levels: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    mask: Tensor | None = None,
) -> Tensor:
    """`so.fsum_inverse` of every row: (rows, m) for levels (m,) of all rows, or (rows, m).

    The arguments are those of `so.ragged.fsum`. A level may be more than a row has scores, which
    gives +inf; a row without scores has NaN. Up to four levels are thresholds of soft top-ks,
    without a sort.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([1.0, 2.0, 4.0, 0.0, 3.0]), torch.tensor([0, 3, 5])
    >>> levels = torch.tensor([0.6, 1.0, 2.9])
    >>> so.ragged.fsum_inverse(values, offsets, levels, temperature=0.1).numpy().round(3)
    array([[1.022, 1.5  , 4.161],
           [0.022, 1.5  ,   inf]], dtype=float32)
    """
    rows, tau = checked_rows(values, offsets, method, temperature, mask)
    _check.fsums.levels_above(levels, rows.columns, -1)
    wanted = levels.to(values.device, torch.float64).expand(rows.count, levels.shape[-1])
    served = method_of("fsum_inverse", method)
    assert isinstance(served, FSumMethod)
    at, number = points_of(rows, served, tau), rows.number(tau)
    if at is not None and few(wanted):
        found = at(wanted)
    elif _compiled(rows, served, number):
        found = served.segments_inverse(rows.wide(), number, rows.offsets, wanted)
    else:
        found = rows.per_row(partial(_padded, _inverse, wanted, method, tau))
    return found.to(values.dtype)


def _compiled(rows: Rows, served: FSumMethod, temperature: Tensor) -> bool:
    """Whether compiled sums take these rows where they are."""
    known = served.number >= 0 and rows.values.shape[0] > 0
    return known and sums_serve(rows.values, temperature, rows.offsets)


def _sums(rows: Rows, t: Tensor, temperature: Tensor, density: Density) -> Tensor:
    """Σ_i F((t - x_i)/τ) over segments, in float64."""
    x, segments = rows.values.double(), rows.segments
    live, tau = x.isfinite(), segments.spread(temperature)
    finite = t.isfinite()
    at = segments.spread(torch.where(finite, t, 0.0).T)  # (m, total)
    u = (at - torch.where(live, x, 0.0)) / tau
    each = torch.where(live, density.cdf(u), 0.0)
    below = torch.stack([segments.add_up(one) for one in each], -1)
    count, certain = (segments.add_up(v.double()) for v in (live, x == math.inf))
    ends = torch.where(t > 0, (count + certain / 2).unsqueeze(-1), torch.where(t < 0, 0.0, t))
    spoiled = segments.add_up(x.isnan().double()).unsqueeze(-1) > 0
    return torch.where(spoiled, math.nan, torch.where(finite, below, ends))


def _padded(
    operator: object, at: Tensor, method: object, temperature: Number, x: Tensor, part: Bucket
) -> Tensor:
    assert callable(operator)
    tau = of(temperature, part)
    found: Tensor = operator(x, at[part.rows], method=method, temperature=tau, mask=part.mask)
    return found


def _inverse(x: Tensor, levels: Tensor, **options: object) -> Tensor:
    """Levels that no score of a bucket could reach are beyond them all."""
    n = x.shape[-1]
    found: Tensor = ops.fsum_inverse(x, levels.clamp(max=n), **options)  # type: ignore[arg-type]
    return found
