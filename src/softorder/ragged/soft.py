"""Soft operators on rows of different lengths."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softorder import _axis, _check, ops
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.kernels import ragged as kernels
from softorder.kernels._operators import Fused
from softorder.kernels.ragged import Bucket, own_ranks
from softorder.ops._interpolation import INTERPOLATIONS, interpolated
from softorder.ops._method import computation, method_of
from softorder.ops._straight import straight_through
from softorder.ragged import hard as limits
from softorder.ragged._rows import Number, Rows, of
from softorder.relaxations import FSumMethod, Method, ThresholdMethod, fused
from softorder.relaxations import ragged as relaxations


def soft_topk(
    values: Tensor,
    offsets: Tensor,
    k: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    largest: bool = True,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """`so.soft_topk` of every row values[offsets_i:offsets_{i+1}]: p in [0, 1] that sum to k.

    Args:
        values: the scores (total,), one row behind another, as in `so.soft_topk`.
        offsets: int64 or int32 (rows + 1,), ascending from 0 to total. Equal ones have an empty
            row between them.
        k: a real number >= 0, or a tensor (rows,). All scores of a row that has no more than k of
            them get 1. May require grad.
        method: as in `so.soft_topk`. Densities read the rows where they are; the rows of other
            methods are padded, those of about the same length together.
        temperature: τ > 0, a number or a tensor (rows,). May require grad. Or "auto", as in
            `so.soft_topk`.
        largest: as in `so.soft_topk`.
        mask: boolean (total,), as in `so.soft_topk`.
        hard: True for the value of `so.ragged.hard.topk` with the gradient of the soft one.

    Returns:
        p (total,), in the dtype of values.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([3.0, 1.0, 2.0, 5.0, 4.0]), torch.tensor([0, 3, 3, 5])
    >>> so.ragged.soft_topk(values, offsets, torch.tensor([2.0, 0.0, 0.5])).numpy().round(3)
    array([0.905, 0.355, 0.741, 0.366, 0.134], dtype=float32)
    """
    if hard is not False:
        both, common = (soft_topk, limits.topk, hard), {"largest": largest, "mask": mask}
        soft: dict[str, Any] = {"method": method, "temperature": temperature}
        return straight_through(*both, (values, offsets, k), common, **soft)
    arguments = values, offsets, k, method, temperature, largest, mask
    rows, served, temperature = _topk_rows("soft_topk", *arguments)
    if isinstance(served, ThresholdMethod) and served.number is not None and _seen(rows):
        numbers = rows.number(k), rows.number(temperature)
        return relaxations.soft_topk(rows.values, rows.offsets, *numbers, served.number)
    return _padded_topk(ops.soft_topk, rows, k, method, temperature)


def log_soft_topk(
    values: Tensor,
    offsets: Tensor,
    k: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    largest: bool = True,
    mask: Tensor | None = None,
) -> Tensor:
    """log p of `so.ragged.soft_topk`, with its arguments: `so.log_soft_topk` of every row.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([0.0, -1000.0, 7.0]), torch.tensor([0, 2, 3])
    >>> so.ragged.log_soft_topk(values, offsets, 0.5).tolist()
    [-0.69314..., -1000.69..., -0.69314...]
    """
    arguments = values, offsets, k, method, temperature, largest, mask
    rows, served, temperature = _topk_rows("log_soft_topk", *arguments)
    if isinstance(served, ThresholdMethod) and served.number is not None and _seen(rows):
        numbers = rows.number(k), rows.number(temperature)
        found = relaxations.log_soft_topk(rows.wide(), rows.offsets, *numbers, served.density)
        return found.to(values.dtype)
    return _padded_topk(ops.log_soft_topk, rows, k, method, temperature)


def _topk_rows(
    operator: str,
    values: Tensor,
    offsets: Tensor,
    k: Number,
    method: object,
    temperature: Temperature,
    largest: bool,
    mask: Tensor | None,
) -> tuple[Rows, Method, Number]:
    _check.flag("largest", largest)
    _check.ragged.rows(values, offsets, mask)
    rows = Rows.checked(values if largest else -values, offsets, mask)
    _check.k_below(k, rows.columns, -1)
    tau = found_temperature(temperature, rows, k, method)
    _check.temperature(tau, rows.columns, -1)
    return rows, method_of(operator, method), tau


def found_temperature(
    temperature: Temperature, rows: Rows, k: Number | None, method: object
) -> Number:
    """A number or numbers of rows, which the scores may have to find."""
    from softorder.ragged import calibration  # which is made of the operators here

    return calibration.of_rows(temperature, rows, k, method)


def _seen(rows: Rows) -> bool:
    """Whether a kernel takes these rows: torch.func is not content with its derivative."""
    return bool(rows.values.shape[0]) and (_check.eager() or _check.traceable())


def _padded_topk(
    operator: Callable[..., Tensor], rows: Rows, k: Number, method: object, temperature: Number
) -> Tensor:
    def compute(x: Tensor, part: Bucket) -> Tensor:
        own = of(k, part)
        own = own.clamp(max=part.width) if isinstance(own, Tensor) else min(own, part.width)
        tau = of(temperature, part)
        return operator(x, own, method=method, temperature=tau, mask=part.mask)

    return rows.per_score(compute)


# ---- ranks and sorts ----------------------------------------------------------------------------


def soft_rank(
    values: Tensor,
    offsets: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    descending: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """`so.soft_rank` of every row: the places of its scores among each other, from 1.

    Values, offsets, temperature and mask are those of `so.ragged.soft_topk`, the others those of
    `so.soft_rank`; hard=True has the value of `so.ragged.hard.rank`. Densities read the rows where
    they are; those of other methods, and without compiled kernels those of all, are padded, rows
    of about the same length together.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([0.3, 2.0, -1.0, 2.0, 7.0]), torch.tensor([0, 4, 5])
    >>> so.ragged.soft_rank(values, offsets, temperature=0.1).numpy().round(3)
    array([2. , 3.5, 1. , 3.5, 1. ], dtype=float32)
    """
    if hard is not False:
        both, common = (soft_rank, limits.rank, hard), {"descending": descending, "mask": mask}
        soft: dict[str, Any] = {"method": method, "temperature": temperature}
        return straight_through(*both, (values, offsets), common, **soft)
    _check.flag("descending", descending)
    rows, tau = checked_rows(values, offsets, method, temperature, mask)
    arguments = rows, method, tau, descending
    return _order("soft_rank", kernels.rank, ops.soft_rank, *arguments)


def soft_sort(
    values: Tensor,
    offsets: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    descending: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
    within: bool = False,
) -> Tensor:
    """`so.soft_sort` of every row, with the arguments of `so.ragged.soft_rank`.

    within=True, as in `so.soft_sort`, pads rows of about the same length together.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([0.3, 2.0, -1.0, 7.0, 5.0]), torch.tensor([0, 3, 5])
    >>> so.ragged.soft_sort(values, offsets, temperature=0.01).numpy().round(3)
    array([-1. ,  0.3,  2. ,  5. ,  7. ], dtype=float32)
    """
    _check.flag("within", within)
    if hard is not False:
        both = partial(soft_sort, within=within), limits.sort, hard
        common = {"descending": descending, "mask": mask}
        soft: dict[str, Any] = {"method": method, "temperature": temperature}
        return straight_through(*both, (values, offsets), common, **soft)
    _check.flag("descending", descending)
    rows, tau = checked_rows(values, offsets, method, temperature, mask)
    arguments = rows, method, tau, descending
    if within:
        inside = partial(ops.soft_sort, within=True)
        return _padded_order("soft_sort", inside, *arguments)(rows.values, tau)
    return _order("soft_sort", kernels.sort, ops.soft_sort, *arguments)


def checked_rows(
    values: Tensor, offsets: Tensor, method: object, temperature: Temperature, mask: Tensor | None
) -> tuple[Rows, Number]:
    """Rows, and the temperature of their order."""
    rows = Rows.checked(values, offsets, mask)
    tau = found_temperature(temperature, rows, None, method)
    _check.temperature(tau, rows.columns, -1)
    return rows, tau


def _order(
    operator: str,
    kernel: Fused,
    padded: Callable[..., Tensor],
    rows: Rows,
    method: object,
    temperature: Number,
    descending: bool,
) -> Tensor:
    served = method_of(operator, method)
    plain = _padded_order(operator, padded, rows, method, temperature, descending)
    if not (isinstance(served, FSumMethod) and served.number >= 0 and rows.values.shape[0]):
        return plain(rows.values, temperature)
    x, tau = rows.wide(), rows.number(temperature)
    if served.walked:
        settings = x, tau, descending, plain, served.number
        found = fused.run(kernel, *settings, tensors=(rows.offsets,))
    elif kernels.sums_serve(x, tau, rows.offsets):
        order = served.segments_rank if operator == "soft_rank" else served.segments_sort
        found = order(x, tau, descending, rows.offsets)
    else:
        return plain(rows.values, temperature)
    return found.to(rows.values.dtype)


def _padded_order(
    operator: str,
    padded: Callable[..., Tensor],
    rows: Rows,
    method: object,
    temperature: Number,
    descending: bool,
) -> Callable[[Tensor, Number], Tensor]:
    """The same by an operator of matrices, as a function of scores and temperature."""

    def plain(x: Tensor, temperature: Number) -> Tensor:
        def compute(x: Tensor, part: Bucket) -> Tensor:
            tau, mask = of(temperature, part), part.mask
            found = padded(x, method=method, temperature=tau, descending=descending, mask=mask)
            return own_ranks(found, x, part) if operator == "soft_rank" else found

        return rows.per_score(compute, x)

    return plain


def permutation_cross_entropy(
    values: Tensor,
    offsets: Tensor,
    target: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    descending: bool = False,
    mask: Tensor | None = None,
    ignore_index: int = -100,
    last: Tensor | None = None,
) -> Tensor:
    """-log of what every score has of its places in the soft permutation of its row.

    `so.losses.permutation_cross_entropy` with reduction="none": target (total,) holds the place
    of every score in its row, from 0. With `last`, a score may have any place from target to last.
    The other arguments are those of `so.ragged.soft_rank`.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([0.3, 2.0, -1.0, 7.0]), torch.tensor([0, 3, 4])
    >>> target = torch.tensor([1, 2, 0, 0])
    >>> losses = so.ragged.permutation_cross_entropy(values, offsets, target, temperature=0.4)
    >>> losses.numpy().round(3)
    array([0.17 , 0.063, 0.104, 0.   ], dtype=float32)
    """
    _check.flag("descending", descending)
    rows, tau = checked_rows(values, offsets, method, temperature, mask)
    _check.ragged.places("target", target, values, rows.offsets, ignore_index)
    served = method_of("permutation_cross_entropy", method)
    placed = computation("permutation_cross_entropy", method)
    first = torch.where(target == ignore_index, -1, target.long())
    places = first, first if last is None else last.long()
    x = rows.wide()

    def bucketed(x: Tensor, temperature: Number) -> Tensor:
        def compute(x: Tensor, part: Bucket) -> Tensor:
            own = [part.pad(place) for place in places]
            x = torch.where(part.mask, x, -math.inf)
            tau = _axis.per_row(of(temperature, part), x)
            return placed(x, own[0], tau, descending, own[1])

        return rows.per_score(compute, x)

    if not (isinstance(served, FSumMethod) and served.number >= 0 and x.shape[0]):
        return bucketed(x, tau).to(values.dtype)

    def plain(x: Tensor, temperature: Tensor) -> Tensor:
        if served.walked or not kernels.sums_serve(x, temperature, rows.offsets):
            return bucketed(x, temperature)
        return served.segments_losses(x, temperature, descending, rows.offsets, places)

    settings = x, rows.number(tau), descending, plain, served.number
    found = fused.run(kernels.placement, *settings, tensors=(rows.offsets, *places))
    return found.to(values.dtype)


# ---- quantiles ----------------------------------------------------------------------------------


def soft_quantile(
    values: Tensor,
    offsets: Tensor,
    q: float | Sequence[float] | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    mask: Tensor | None = None,
    interpolation: str = "inverse",
    within: bool = False,
    weights: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """`so.soft_quantile` of every row: (rows,), or (m, rows) for m of them.

    Values, offsets, temperature and mask are those of `so.ragged.soft_topk`, the others those of
    `so.soft_quantile`, weights (total,); a row without scores has NaN. Nothing is sorted where the
    method is a density: since F is even, the quantile of a row is the threshold of a soft top-k
    with k = (1 - q) n. With `within` or weights rows of about the same length are padded together.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([1.0, 2.0, 4.0, 8.0, 3.0]), torch.tensor([0, 4, 4, 5])
    >>> so.ragged.soft_quantile(values, offsets, 0.6, temperature=0.1).numpy().round(3)
    array([3.978,   nan, 3.022], dtype=float32)
    """
    if hard is not False:
        both = partial(soft_quantile, within=within), limits.quantile, hard
        common = {"mask": mask, "interpolation": interpolation, "weights": weights}
        soft: dict[str, Any] = {"method": method, "temperature": temperature}
        return straight_through(*both, (values, offsets, q), common, **soft)
    rows, tau = checked_rows(values, offsets, method, temperature, mask)
    q = _check.quantiles.as_tensor(q)
    _check.q(q, rows.columns, -1)
    _check.choice("interpolation", interpolation, INTERPOLATIONS)
    _check.quantiles.within(within, interpolation)
    if weights is not None:
        _check.quantiles.weights(weights, values, interpolation)
        weights = weights.expand(values.shape)
    served, levels = method_of("soft_quantile", method), _axis.leading_last(q, values)
    at = points_of(rows, served, tau)
    if at is not None and weights is None and not within:
        n = rows.present.unsqueeze(-1)
        if interpolation == "inverse":
            found = at(levels * n)
        else:
            found = interpolated(at, levels, n, interpolation)
    else:
        options = {"interpolation": interpolation, "within": within, "method": method}
        found = rows.per_row(partial(_padded_quantile, levels, tau, weights, options))
    return _axis.leading(found.to(values.dtype), q, -1, keepdim=False)


def points_of(rows: Rows, served: Method, temperature: Number) -> Callable[[Tensor], Tensor] | None:
    """Where FSum has given levels, of rows where they are; None if no kernel takes them."""
    if not (isinstance(served, FSumMethod) and served.number >= 0 and _seen(rows)):
        return None
    tau, density = rows.number(temperature), served.density
    return lambda levels: relaxations.points(rows.values, rows.offsets, levels, tau, density)


def _padded_quantile(
    levels: Tensor,
    temperature: Number,
    weights: Tensor | None,
    options: Mapping[str, Any],
    x: Tensor,
    part: Bucket,
) -> Tensor:
    own = levels[part.rows] if levels.dim() > 1 and levels.shape[0] > 1 else levels
    q = own.movedim(-1, 0) if own.dim() > 1 else own
    numbers: dict[str, Any] = {"temperature": of(temperature, part), "mask": part.mask}
    if weights is not None:
        numbers["weights"] = part.pad(weights)
    return ops.soft_quantile(x, q, **numbers, **options).movedim(0, -1)


def soft_median(
    values: Tensor,
    offsets: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """`so.ragged.soft_quantile` with q = 1/2.

    >>> import torch, softorder as so
    >>> values, offsets = torch.tensor([1.0, 2.0, 100.0, 7.0]), torch.tensor([0, 3, 4])
    >>> so.ragged.soft_median(values, offsets, temperature=0.5).numpy().round(3)
    array([2.063, 7.   ], dtype=float32)
    """
    options: dict[str, Any] = {"temperature": temperature, "mask": mask, "hard": hard}
    return soft_quantile(values, offsets, 0.5, method=method, **options)
