"""fsum and fsum_inverse: the sum that all orderings are made of, and where it has a value."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.ops import _forms, _rows
from softorder.ops._method import computation
from softorder.ops.calibration import of_order


def fsum(
    scores: Tensor,
    points: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    mask: Tensor | None = None,
) -> Tensor:
    """How many scores are below each of m points, as a smooth function of both.

    With F the CDF of an even density, the method,

        FSum(t) = Σ_i F((t - scores_i)/τ)

    counts a score far below t as 1, one far above as 0, and one at t as 1/2: it rises from 0 to n.
    FSum(scores_i) is `so.soft_rank` less 1/2. With u_ji = (points_j - scores_i)/τ, f = F' and
    upstream v,

        ∂L/∂points_j = v_j Σ_i f(u_ji)/τ        ∂L/∂scores_i = -Σ_j v_j f(u_ji)/τ
        ∂L/∂τ = -Σ_ji v_j u_ji f(u_ji)/τ.

    FSum/n is a smooth empirical distribution function, its differences are a histogram with soft
    bins. Time O((n + m) log(n + m)) for the densities of the library, O(n m) for your own; memory
    O(n + m); derivatives included.

    Args:
        scores: as in `so.soft_rank`: -inf takes no part, +inf is above every finite point, NaN
            makes its row NaN.
        points: t, of any floating dtype, in any order. 1-D for points of all rows; otherwise shaped
            as scores, but m long along `dim`, and the other axes broadcast over the rows. May
            require grad. A point of -inf gives 0, one of +inf the number of scores that take part
            (those of +inf are at the point, and count half), NaN gives NaN.
        method: "laplace", "logistic", "normal", "cauchy" or "uniform"; or an even density of your
            own, as in `so.soft_rank`.
        temperature: as in `so.soft_rank`.
        dim: the axis of the scores; that of the points takes its place. Several of them, or None
            for all, are taken as one behind the others: points and result then have theirs last.
        mask: as in `so.soft_rank`; what takes no part is not counted, and gets no gradient.

    Returns:
        Sums, with the dtype of scores and their shape, but m long along `dim`.

    Paper: LapSum (Struski et al. 2025), Theorem 4.1.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([[1.0, 2.0, 4.0], [0.0, 0.0, 3.0]])
    >>> points = torch.tensor([-1.0, 0.0, 2.5, 10.0])
    >>> so.fsum(scores, points, temperature=0.1).numpy().round(3)
    array([[0.   , 0.   , 1.997, 3.   ],
           [0.   , 1.   , 2.003, 3.   ]], dtype=float32)
    """
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, fsums

        settings = {"method": method, "temperature": temperature}
        return _jagged.per_row(fsums.fsum, scores, dim, mask, False, points, **settings)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    if not isinstance(dim, int):
        options = {"points": points, "method": method, "temperature": temperature}
        return _forms.reduced(fsum, scores, _axis.axes(scores, dim), mask, options)
    _rows.check(scores, temperature, dim, False, mask)
    _check.fsums.points(points, scores, dim)
    compute = computation("fsum", method)
    x = _rows.rows(scores, dim, mask)
    dtype = torch.promote_types(x.dtype, points.dtype)
    x, t = x.to(dtype), _axis.beside_rows(points, scores, dim).to(x.device, dtype)
    if x.shape[-1] == 0:
        result = x.sum(-1, keepdim=True) + torch.where(t.isnan(), t, 0.0)  # parts of the graph
    else:
        result = compute(x, t, _axis.per_row(temperature, x, dim))
    return _axis.back(result, scores, dim)


def fsum_inverse(
    scores: Tensor,
    levels: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    mask: Tensor | None = None,
) -> Tensor:
    """The points below which so many scores are: t with `fsum` (scores, t) = level.

    With d_i = f((t - scores_i)/τ) and S = Σ d,

        ∂t/∂scores_i = d_i/S        ∂t/∂level = τ/S        ∂t/∂τ = Σ_i d_i (t - scores_i)/(τ S).

    `so.soft_sort` is the same at j - 1/2 for j = 1..n, and `so.soft_quantile` at q n. Time
    O((n + m) log(n + m)) for the densities of the library, O(n m) for your own; memory O(n + m).

    Args:
        scores: as in `so.fsum`.
        levels: numbers in [0, n], in any order, shaped as the points of `so.fsum`. May require
            grad. FSum reaches 0 and the number of finite scores that take part only at infinity: a
            level of 0 gives -inf, that number and what is above it +inf.
        method: as in `so.fsum`.
        temperature: as in `so.soft_rank`.
        dim: the axis of the scores; that of the levels takes its place. Several of them, or None
            for all, are taken as one behind the others: levels and result then have theirs last.
        mask: as in `so.fsum`.

    Returns:
        Points, with the dtype of scores and their shape, but m long along `dim`. NaN where no score
        takes part.

    Paper: LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([1.0, 2.0, 4.0])
    >>> points = so.fsum_inverse(scores, torch.tensor([0.5, 1.0, 2.9]), temperature=0.1)
    >>> points.numpy().round(3)
    array([1.   , 1.5  , 4.161], dtype=float32)
    >>> so.fsum(scores, points, temperature=0.1).numpy().round(3)
    array([0.5, 1. , 2.9], dtype=float32)
    """
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, fsums

        settings = {"method": method, "temperature": temperature}
        return _jagged.per_row(fsums.fsum_inverse, scores, dim, mask, False, levels, **settings)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    if not isinstance(dim, int):
        options = {"levels": levels, "method": method, "temperature": temperature}
        return _forms.reduced(fsum_inverse, scores, _axis.axes(scores, dim), mask, options)
    _rows.check(scores, temperature, dim, False, mask)
    _check.fsums.levels(levels, scores, dim)
    compute = computation("fsum_inverse", method)
    x = _rows.rows(scores, dim, mask)
    wanted = _axis.per_row(_axis.beside_rows(levels, scores, dim), x)
    return _axis.back(_rows.at_levels(compute, x, wanted, temperature, dim), scores, dim)
