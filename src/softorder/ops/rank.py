"""soft_rank."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from softorder import _check
from softorder import hard as limits
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.ops import _cut, _forms, _rows
from softorder.ops._method import computation
from softorder.ops._straight import straight_through
from softorder.ops.calibration import of_order


def soft_rank(
    scores: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """The place of every score among the others, from 1 to n, as a smooth function of them.

    With F the CDF of an even density, the method, and u_ij = (scores_i - scores_j)/τ,

        rank_i = 1/2 + Σ_j F(u_ij)

    counts softly how many scores are below. Ranks sum to n(n+1)/2 at every temperature. With
    upstream v and f = F',

        ∂L/∂scores_i = (v_i Σ_j f(u_ij) - Σ_j v_j f(u_ij))/τ
        ∂L/∂τ = -(1/τ) Σ_ij v_i u_ij f(u_ij).

    As τ → 0 this is `so.hard.rank`, where equal scores share the average of their places. Time
    O(n log n) for the densities of the library, O(n²) for your own; memory O(n); derivatives
    included.

    Args:
        scores: float64, float32, float16 or bfloat16, of any shape with at least one axis. A score
            of -inf takes no part, +inf is certainly the largest, NaN makes its row NaN.
        method: "laplace", "logistic", "normal", "cauchy" or "uniform"; another one of
            `so.methods()`, which has formulas of its own; or an even density of your own: an object
            with cdf and pdf.
        temperature: τ > 0, a number or a tensor that broadcasts over the rows (the shape of scores
            without `dim`, or with size 1 there). May require grad. "auto", or
            `so.Auto(softness=...)`, finds one at which the ranks are that soft.
        dim: the axis along which the scores are ranked; several of them, or None for all, are taken
            as one.
        descending: True gives the largest score rank 1.
        mask: boolean, broadcasts to scores; False takes no part. What takes no part goes last, at
            the average of the last places, in both directions, and gets no gradient.
        hard: True for the value of `so.hard.rank` with the gradient of the soft one, known as
            straight-through: what comes next sees a hard choice, and the scores still learn.

    Returns:
        Ranks, with the shape and the dtype of scores. (float16 counts exactly only to 2,048, and
        bfloat16 to 256: rank long rows in float32.)

    Paper: LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.3, 2.0, -1.0, 2.0])
    >>> so.soft_rank(scores, temperature=0.1).numpy().round(3)
    array([2. , 3.5, 1. , 3.5], dtype=float32)
    >>> so.soft_rank(scores, temperature=1.0, descending=True).numpy().round(3)
    array([2.954, 1.616, 3.814, 1.616], dtype=float32)
    """
    if hard is False and _rows.usual(scores, temperature, dim, descending, mask):
        compute = computation("soft_rank", method)
        return _rows.along(compute, scores, temperature, dim, descending, mask)
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, soft

        settings = {"method": method, "temperature": temperature, "descending": descending}
        return _jagged.per_score(soft.soft_rank, scores, dim, mask, hard=hard, **settings)
    if hard is not False:
        common = {"dim": dim, "descending": descending, "mask": mask}
        both = soft_rank, limits.rank, hard
        return straight_through(*both, (scores,), common, method=method, temperature=temperature)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    if _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        numbers, options = (
            {"temperature": temperature},
            {"method": method, "descending": descending},
        )
        cut = partial(_cut.order, "soft_rank")
        return _forms.elementwise(soft_rank, cut, scores, dim, mask, numbers, options)
    assert isinstance(dim, int)
    _rows.check(scores, temperature, dim, descending, mask)
    compute = computation("soft_rank", method)
    return _rows.along(compute, scores, temperature, dim, descending, mask)
