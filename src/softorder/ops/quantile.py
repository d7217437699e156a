"""soft_quantile and soft_median."""

from __future__ import annotations

from torch import Tensor

from softorder import _axis, _check
from softorder import hard as limits
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.ops import _cut, _forms, _rows
from softorder.ops._method import computation
from softorder.ops._straight import straight_through
from softorder.ops.calibration import of_order


def soft_quantile(
    scores: Tensor,
    q: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    keepdim: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """The value that the part q of the scores lies below, as a smooth function of scores and q.

    With F the CDF of an even density, the method, FSum(t) = Σ_i F((t - scores_i)/τ) counts softly
    how many of the n scores are below t, and

        quantile_q = t  with  FSum(t) = q n.

    With d_i = f((t - scores_i)/τ) and S = Σ d: ∂t/∂scores_i = d_i/S, ∂t/∂q = n τ/S and
    ∂t/∂τ = Σ d_i (t - scores_i)/(τ S). As τ → 0 this is `so.hard.quantile`: a score, or, where q n
    is an integer, a point between two of them (their middle, if the density falls off fast).

    Args:
        scores: as in `so.soft_rank`.
        q: a number in [0, 1], or a tensor of them, shaped as for torch.quantile: a scalar, or 1-D
            for several quantiles at once. With more axes, the others broadcast over the rows (the
            shape of scores without `dim`), for a q of every row. May require grad. At q = 0 the
            quantile is -inf and at q = 1 it is +inf: for a soft minimum or maximum take the ends of
            `so.soft_sort`.
        method: as in `so.soft_rank`.
        temperature: as in `so.soft_rank`.
        mask: as in `so.soft_rank`; what takes no part does not count in n.
        dim: the axis that is reduced; several of them, or None for all, are reduced as one.
        keepdim: keep `dim`, with size 1.
        hard: True for the value of `so.hard.quantile` with the gradient of the soft one, known as
            straight-through: what comes next sees a hard choice, and the scores still learn.

    Returns:
        The shape of scores without `dim`; with a leading axis for the quantiles unless q is a
        scalar. NaN where no score takes part. Time O(n log n).

    Paper: LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([[1.0, 2.0, 4.0, 8.0], [0.0, 0.0, 3.0, 3.0]])
    >>> so.soft_quantile(scores, 0.6, temperature=0.1).numpy().round(3)
    array([3.978, 2.908], dtype=float32)
    >>> so.soft_quantile(scores, torch.tensor([0.1, 0.6]), temperature=0.1).shape
    torch.Size([2, 2])
    """
    _check.flag("keepdim", keepdim)
    if hard is not False:
        common = {"dim": dim, "keepdim": keepdim, "mask": mask}
        both = soft_quantile, limits.quantile, hard
        return straight_through(*both, (scores, q), common, method=method, temperature=temperature)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    if _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        return _forms.per_row(
            soft_quantile,
            _cut.quantile,
            scores,
            dim,
            mask,
            ("q", q),
            {"temperature": temperature},
            {"method": method},
            keepdim,
        )
    assert isinstance(dim, int)
    _rows.check(scores, temperature, dim, False, mask)
    _check.q(q, scores, dim)
    compute = computation("soft_quantile", method)
    x = _rows.rows(scores, dim, mask)
    result = _rows.at_levels(compute, x, _axis.leading_last(q, x), temperature, dim)
    return _axis.leading(result.to(scores.dtype), q, dim, keepdim)


def soft_median(
    scores: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    keepdim: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """`soft_quantile` with q = 1/2: as many scores softly below as above.

    It minimises Σ_i h(t - scores_i) where h' = 2F(·/τ) - 1: for τ → 0 the absolute deviation, for
    large τ nearly the square.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([1.0, 2.0, 100.0], requires_grad=True)
    >>> median = so.soft_median(scores, temperature=0.5)
    >>> round(median.item(), 3)
    2.063
    >>> median.backward()
    >>> scores.grad.numpy().round(3)
    array([0.119, 0.881, 0.   ], dtype=float32)
    """
    return soft_quantile(
        scores,
        0.5,
        method=method,
        temperature=temperature,
        dim=dim,
        keepdim=keepdim,
        mask=mask,
        hard=hard,
    )
