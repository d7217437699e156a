"""topk, kthvalue and median: places in the order of the scores."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.densities import Density
from softorder.ops import _rows
from softorder.ops._method import method_of
from softorder.ops._straight import with_value
from softorder.ops.topk import soft_topk
from softorder.ops.torch_shaped._results import Selected, learns, mean, only

Method = str | Density | object


def topk(
    scores: Tensor,
    k: int,
    dim: int = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Selected:
    """torch.topk, whose gradient knows what was nearly chosen.

    With P the first k rows of a descending `so.soft_permutation` (ascending for largest=False),

        values = P @ scores        weights_i = Σ_j P_ji = `so.soft_topk` (scores, k)

    are the soft values, means of the scores that never leave their range, and how much of every
    score is chosen. hard=True, the default, returns torch's values with the gradient of these;
    hard=False returns them themselves. As τ → 0 both become one.

    Args:
        scores: as in `so.soft_topk`.
        k: an int in [0, n].
        dim: the axis along which scores compete.
        largest: False chooses the smallest.
        sorted: False leaves the order of the k to torch.
        method: any that serves `so.soft_topk` and `so.soft_permutation`.
        temperature: as in `so.soft_topk`.
        mask: as in `so.soft_topk`. What takes no part comes after everything else: where fewer than
            k take part, the last values are infinite.
        hard: whether the values are torch's or the soft ones. The gradient is the same.

    Returns:
        A named tuple of values and indices, k long along `dim`, ties broken as torch does it; and
        of weights, with the shape of scores, which sum to k. Time of a density: a sort, and O(n)
        for all k; without derivatives torch.topk and a soft top-k.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([2.0, 0.5, 1.8, -1.0], requires_grad=True)
    >>> best = so.topk(scores, 2, temperature=0.2)
    >>> best.values, best.indices
    (tensor([2.0000, 1.8000], grad_fn=<AddBackward0>), tensor([0, 2]))
    >>> best.weights.detach().numpy().round(3)
    array([0.994, 0.023, 0.983, 0.   ], dtype=float32)
    >>> best.values[1].backward()  # torch's gradient would be (0, 0, 1, 0)
    >>> (scores.grad != 0).tolist()
    [True, True, True, True]
    >>> so.topk(scores, 2, temperature=0.2, hard=False).values.detach().numpy().round(3)
    array([1.939, 1.831], dtype=float32)
    """
    _check.flag("sorted", sorted)
    _check.flag("hard", hard)
    _check.scores(scores, dim)
    _check.count("k", k, least=0, most=scores.shape[dim])
    weights = soft_topk(
        scores, k, method=method, temperature=temperature, dim=dim, largest=largest, mask=mask
    )
    seen = only(scores, mask, -1.0 if largest else 1.0)
    found = torch.topk(seen, k, dim, largest, sorted)
    values = found.values
    if k > 0 and (not hard or learns(scores, temperature)):
        soft = _sorted_topk(scores, k, dim, largest, method, temperature, mask)
        if not sorted:  # from places to where torch has put them
            places = values.argsort(dim=dim, descending=largest, stable=True).argsort(dim=dim)
            soft = soft.gather(dim, places)
        values = with_value(values, soft) if hard else soft
    return Selected(values, found.indices, weights)


def kthvalue(
    scores: Tensor,
    k: int,
    dim: int = -1,
    keepdim: bool = False,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Selected:
    """torch.kthvalue: the k-th smallest, with a gradient for all that might have been.

    Row k of an ascending `so.soft_permutation` is what the k smallest have more than k - 1:

        weights = `so.soft_topk` (scores, k, largest=False) - `so.soft_topk` (scores, k - 1, ...)

    and the soft value is Σ_i weights_i scores_i. Time O(n): nothing is sorted softly.

    Args:
        scores: as in `so.soft_topk`.
        k: an int in [1, n].
        dim: the axis that is reduced.
        keepdim: keep `dim`, with size 1.
        method: any that serves `so.soft_topk`.
        temperature: as in `so.soft_topk`.
        mask: as in `so.soft_topk`. Where fewer than k take part the value is +inf.
        hard: as in `topk`.

    Returns:
        A named tuple of values, indices (torch's) and weights, the shape of scores, which sum to 1.

    >>> import torch, softorder as so
    >>> second = so.kthvalue(torch.tensor([3.0, 1.0, 2.0]), 2, temperature=0.3)
    >>> second.values, second.indices, second.weights.numpy().round(2)
    (tensor(2.), tensor(2), array([0.09, 0.09, 0.81], dtype=float32))
    """
    _check.scores(scores, dim)
    _check.count("k", k, least=1, most=scores.shape[dim])
    found = torch.kthvalue(only(scores, mask, 1.0), k, dim)
    place = torch.full_like(found.indices, k, dtype=torch.float64)
    return _at(scores, place, found, dim, keepdim, method, temperature, mask, hard)


def median(
    scores: Tensor,
    dim: int | None = None,
    keepdim: bool = False,
    *,
    method: Method = "laplace",
    temperature: float | Tensor = 1.0,
    mask: Tensor | None = None,
    hard: bool = True,
) -> Tensor | Selected:
    """torch.median: the lower one of an even number, as `kthvalue` with k = ⌊(n + 1)/2⌋.

    Takes the arguments of `kthvalue`; dim=None reduces all and returns the value only, as torch
    does. What takes no part does not count in n; the median of nothing is NaN. `so.soft_median` is
    the one that lies in the middle.

    >>> import torch, softorder as so
    >>> so.median(torch.tensor([1.0, 2.0, 4.0, 100.0]))
    tensor(2.)
    >>> so.median(torch.tensor([[1.0, 2.0, 4.0], [9.0, 7.0, 8.0]]), dim=1).indices
    tensor([1, 2])
    """
    if dim is None:
        _check.floating("scores", scores)
        _check.mask(mask, scores)
        flat = None if mask is None else mask.expand(scores.shape).flatten()
        options = {"method": method, "temperature": temperature, "mask": flat, "hard": hard}
        return median(scores.flatten(), -1, **options)[0]  # type: ignore[arg-type]
    _check.scores(scores, dim)
    _check.not_empty(scores, dim)
    seen = only(scores, mask, 1.0)
    taken = torch.ones_like(seen, dtype=torch.bool) if mask is None else mask.expand(seen.shape)
    n = taken.sum(dim)
    ordered = seen.sort(dim=dim, stable=True)
    place = ((n - 1).clamp(min=0) // 2).unsqueeze(dim)
    indices = ordered.indices.gather(dim, place).squeeze(dim)
    values = ordered.values.gather(dim, place).squeeze(dim)
    spoiled = (seen.isnan() & taken).any(dim) | (n == 0)
    found = torch.where(spoiled, torch.nan, values), indices
    k = ((n + 1) // 2).double()
    return _at(scores, k, found, dim, keepdim, method, temperature, mask, hard)


def _sorted_topk(
    scores: Tensor,
    k: int,
    dim: int,
    largest: bool,
    method: Method,
    temperature: float | Tensor,
    mask: Tensor | None,
) -> Tensor:
    """The first k of P @ scores."""
    served = method_of("soft_permutation", method)
    x = _axis.rows(scores, dim, largest, mask)
    tau = _axis.per_row(temperature, x)
    soft = served.permuted(x, x.unsqueeze(-2), tau, True, k).squeeze(-2)
    return _axis.back(soft if largest else -soft, scores, dim)


def _at(
    scores: Tensor,
    k: Tensor,
    found: tuple[Tensor, Tensor],
    dim: int,
    keepdim: bool,
    method: Method,
    temperature: float | Tensor,
    mask: Tensor | None,
    hard: bool,
) -> Selected:
    """The k-th smallest of every row, softly, around what was found."""
    _check.flag("keepdim", keepdim)
    _check.flag("hard", hard)
    _rows.check(scores, temperature, dim, False, mask)
    wide = scores.double()  # small differences of numbers up to 1
    options = {"method": method, "temperature": temperature, "dim": dim, "mask": mask}
    upto, before = (
        soft_topk(wide, level, largest=False, **options)  # type: ignore[arg-type]
        for level in (k, (k - 1).clamp(min=0))
    )
    weights = upto - before
    weights = (weights + (weights.detach().clamp(min=0) - weights.detach())).to(scores.dtype)
    values, indices = found
    if not hard or learns(scores, temperature):
        given = scores if mask is None else torch.where(mask, scores, 0.0)
        soft = torch.where(values.isfinite(), mean(weights, given, dim), values)
        values = with_value(values, soft) if hard else soft
    if keepdim:
        values, indices = values.unsqueeze(dim), indices.unsqueeze(dim)
    return Selected(values, indices, weights)
