"""sort and argsort: all places, and what belongs to the scores there."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.densities import Density
from softorder.kernels.sort.rows import sort_rows
from softorder.ops import _rows
from softorder.ops._method import method_of
from softorder.ops._straight import with_value
from softorder.ops.torch_shaped._results import Ordered, OrderedWith, learns

Method = str | Density | object


def sort(
    scores: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = False,
    *,
    values: Tensor | None = None,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Ordered | OrderedWith:
    """torch.sort, with the gradient of a soft sort, also for what belongs to the scores.

    The soft values are `so.soft_sort` (scores, within=True) = P @ scores, with P the matrix of
    `so.soft_permutation`; those of companions y, `values=y`, are P @ y. For a density no matrix is
    made. With its thresholds FSum(t_j) = j,

        (P y)_j = G(t_j) - G(t_{j-1})        G(t) = Σ_i y_i F((t - scores_i)/τ)

    which takes O(n log n) where FSum does, with the derivatives in scores, temperature and y.
    hard=True, the default, returns torch's order with these gradients; hard=False returns P @.

    Args:
        scores: the keys, as in `so.soft_rank`. As everywhere here -inf takes no part.
        dim: the axis along which they are sorted.
        descending: True for the largest first.
        stable: True promises that equal scores keep their order, which they do in any case.
        values: companions, shaped as scores, or with further axes behind these: (..., n, features).
            Floating; may require grad.
        method: any that serves `so.soft_sort`, with companions `so.soft_permutation`.
        temperature: as in `so.soft_rank`.
        mask: as in `so.soft_rank`. What takes no part goes last, its companions in their order; the
            value is +inf there, or -inf for descending.
        hard: whether the results are torch's or the soft ones. The gradient is the same.

    Returns:
        A named tuple of values and indices (int64, torch's), and of companions if there are any.

    >>> import torch, softorder as so
    >>> scores, names = torch.tensor([0.3, 2.0, -1.0, 1.2]), torch.tensor([10.0, 20.0, 30.0, 40.0])
    >>> so.sort(scores)
    Ordered(values=tensor([-1.0000,  0.3000,  1.2000,  2.0000]), indices=tensor([2, 0, 3, 1]))
    >>> so.sort(scores, values=names).companions
    tensor([30., 10., 40., 20.])
    >>> so.sort(scores, values=names, temperature=0.3, hard=False).companions.numpy().round(1)
    array([28.9, 14.4, 34.2, 22.5], dtype=float32)
    """
    _check.flag("stable", stable)
    _check.flag("hard", hard)
    _rows.check(scores, temperature, dim, descending, mask)
    if values is not None:
        _check.companions(values, scores)
    x = _rows.rows(scores, dim, mask)
    y = _features(values, x, scores, dim)
    order = _order(x.detach(), descending)
    result = y.detach().gather(-1, order.unsqueeze(-2).expand(y.shape))
    if y.numel() > 0 and (not hard or learns(scores, temperature, values)):
        tau = _axis.per_row(temperature, x)
        if values is None:
            served = method_of("soft_sort", method)
            soft = served.soft_sort_within(x, tau, descending).unsqueeze(-2)
        else:
            served = method_of("soft_permutation", method)
            soft = served.permuted(x, y, tau, descending, x.shape[-1]).to(y.dtype)
        result = with_value(result, soft) if hard else soft
    keys = result[..., 0, :]
    keys = keys if descending else torch.where(keys == -math.inf, math.inf, keys)
    indices = order if dim == -1 else order.movedim(-1, dim)
    found = _axis.back(keys, scores, dim), indices
    if values is None:
        return Ordered(*found)
    theirs = result[..., 1:, :].movedim(-1, dim % scores.dim())
    return OrderedWith(*found, theirs.reshape(values.shape).to(values.dtype))


def argsort(
    scores: Tensor,
    dim: int = -1,
    descending: bool = False,
    stable: bool = False,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Tensor:
    """Which score is at each place, as a number with a gradient.

    An int64 has none: torch.argsort gives it, and so does `sort`. This is the position of the score
    as a floating-point number, whose gradient is that of the mean position Σ_i i P_ji at place j.
    hard=False returns that mean. The way back, which place each score has, is `so.soft_rank`.

    Takes the arguments of `sort`; the method has to serve `so.soft_permutation`.

    Returns:
        Positions from 0 in float32, or float64 for such scores (float16 counts only to 2,048).

    >>> import torch, softorder as so
    >>> so.argsort(torch.tensor([0.3, 2.0, -1.0, 1.2]))
    tensor([2., 0., 3., 1.])
    >>> so.argsort(torch.tensor([0.3, 2.0, -1.0]), temperature=0.5, hard=False).numpy().round(2)
    array([1.73, 0.35, 0.92], dtype=float32)
    """
    _rows.check(scores, temperature, dim, descending, mask)
    wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
    place = torch.arange(scores.shape[dim], device=scores.device, dtype=wide)
    shape = [1] * scores.dim()
    shape[dim] = -1
    options = {"method": method, "temperature": temperature, "mask": mask, "hard": hard}
    found = sort(
        scores,
        dim,
        descending,
        stable,
        values=place.reshape(shape).expand(scores.shape),
        **options,  # type: ignore[arg-type]
    )
    return found[2]  # type: ignore[misc]


def _order(x: Tensor, descending: bool) -> Tensor:
    """Where the values come from, equal ones in their order; what is absent is last, in its own."""
    n = x.shape[-1]
    if n == 0:
        return torch.empty(x.shape, dtype=torch.int64, device=x.device)
    if not descending:
        return sort_rows(x).order
    rows = sort_rows(x.flip(-1))  # turned around twice, equal ones are as they were
    place, present = rows.places(), torch.as_tensor(rows.available, device=x.device)
    turned = torch.where(place < present, present - 1 - place, n - 1 + present - place)
    return n - 1 - rows.order.gather(-1, turned.expand_as(rows.order))


def _features(values: Tensor | None, x: Tensor, scores: Tensor, dim: int) -> Tensor:
    """The scores, and what belongs to them: (rows, 1 + features, n)."""
    own = x.unsqueeze(-2)
    if values is None:
        return own
    axes = scores.dim()
    y = values.flatten(axes) if values.dim() > axes else values.unsqueeze(-1)
    y = y.movedim(dim % axes, -1)
    wide = torch.promote_types(x.dtype, y.dtype)
    return torch.cat([own.to(wide), y.to(wide)], -2)
