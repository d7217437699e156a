"""soft_topk and log_soft_topk."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from torch import Tensor

from softorder import _axis, _check
from softorder import hard as limits
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.ops import _cut, _forms, calibration
from softorder.ops._method import method_of
from softorder.ops._straight import straight_through


def soft_topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """How much each score belongs to the k largest: numbers in [0, 1] that sum to k.

    Solves max_π <scores, π> - τ Σ ψ(π_i) over {π in [0,1]^n, Σ π = k}, where ψ' = F⁻¹ and F is the
    CDF of an even density, the method. The maximiser is p_i = F((scores_i - b)/τ) with the one
    threshold b that makes Σ p = k. With d_i = f((scores_i - b)/τ)/τ, q = d/Σd and upstream v,

        ∂L/∂scores = d ⊙ (v - <q,v>)    ∂L/∂k = <q,v>    ∂L/∂τ = -(1/τ) Σ v_i d_i (x_i - <q,x>).

    As τ → 0 this is `so.hard.topk`. Time O(n): nothing is sorted.

    Args:
        scores: float64, float32, float16 or bfloat16, of any shape with at least one axis. A score
            of -inf gets 0, +inf is certain, NaN makes its row NaN.
        k: a real number in [0, n], or a tensor of them that broadcasts over the rows (the shape of
            scores without `dim`, or with size 1 there). May require grad.
        method: "laplace", "logistic", "normal", "cauchy" or "uniform"; another one of
            `so.methods()`, which has formulas of its own; or an even density of your own: an object
            with cdf and pdf, and perhaps log_cdf and quantile.
        temperature: τ > 0, a number or a tensor that broadcasts over the rows. May require grad.
            "auto", or `so.Auto(softness=...)`, finds one that suits the scores.
        dim: the axis along which the scores compete; several of them, or None for all, compete as
            one.
        largest: False chooses the k smallest.
        mask: boolean, broadcasts to scores; False takes no part, gets 0 and no gradient. Where
            fewer than k take part, each of them gets 1.
        hard: True for the value of `so.hard.topk` with the gradient of the soft one, known as
            straight-through: what comes next sees a hard choice, and the scores still learn.

    Returns:
        p, with the shape and the dtype of scores.

    Papers: LapSum (Struski et al. 2025); SOFT top-k (Xie et al. 2020).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([3.0, 1.0, 2.0, -1.0])
    >>> so.soft_topk(scores, 2, temperature=0.5).numpy().round(3)
    array([0.976, 0.194, 0.826, 0.004], dtype=float32)
    >>> so.soft_topk(scores, 2, method="uniform")
    tensor([1., 0., 1., 0.])
    >>> so.soft_topk(scores, 1.5, temperature=torch.tensor(5.0)).sum()
    tensor(1.5000)
    >>> so.soft_topk(scores.requires_grad_(), 2, temperature=0.5, hard=True)
    tensor([1., 0., 1., 0.], grad_fn=<AddBackward0>)
    """
    if hard is not False:
        if _forms.is_jagged(scores):
            from softorder.ragged import _jagged, soft

            settings = {"method": method, "temperature": temperature, "largest": largest}
            return _jagged.per_score(soft.soft_topk, scores, dim, mask, k, hard=hard, **settings)
        options = {"dim": dim, "largest": largest, "mask": mask}
        both = soft_topk, limits.topk, hard
        return straight_through(*both, (scores, k), options, method=method, temperature=temperature)
    return _apply("soft_topk", scores, k, method, temperature, dim, largest, mask)


def log_soft_topk(
    scores: Tensor,
    k: float | Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    largest: bool = True,
    mask: Tensor | None = None,
) -> Tensor:
    """log p of `soft_topk`, exact and with a finite gradient where p itself underflows.

    Never the logarithm of a rounded p: every density has its own stable log F. The arguments are
    those of `soft_topk`; what gets 0 there gets -inf here.

    >>> import torch, softorder as so
    >>> so.log_soft_topk(torch.tensor([0.0, -1000.0]), 0.5).tolist()
    [-0.69314..., -1000.69...]
    """
    return _apply("log_soft_topk", scores, k, method, temperature, dim, largest, mask)


def _apply(
    operator: str,
    scores: Tensor,
    k: float | Tensor,
    method: object,
    temperature: Any,
    dim: Any,
    largest: bool,
    mask: Tensor | None,
) -> Tensor:
    usual = largest is True and _check.usual(scores, dim, temperature, mask, k)
    if not usual:
        _check.flag("largest", largest)
        if _forms.special(scores, dim, temperature) or _forms.is_jagged(scores):
            return _special(operator, scores, k, method, temperature, dim, largest, mask)
        assert isinstance(dim, int)
        _check.scores(scores, dim)
        _check.k(k, scores, dim)
        _check.temperature(temperature, scores, dim)
        _check.mask(mask, scores)
    served = method_of(operator, method)
    if not usual and scores.shape[dim] == 0:
        return scores.clone()
    compute = getattr(served, operator)
    if operator in served.takes_scores_as_they_are:
        k = _axis.per_row(k, scores, dim) if isinstance(k, Tensor) else k
        if isinstance(temperature, Tensor):
            temperature = _axis.per_row(temperature, scores, dim)
        return compute(scores if largest else -scores, k, temperature, mask, dim)
    numbers = _axis.per_rows(k, temperature, scores, dim)
    rows = _axis.rows(scores, dim, largest, mask)
    if served.looks_at_k and not isinstance(k, Tensor):
        result = compute(rows, *numbers, most=max(math.ceil(k), 1))
    else:
        result = compute(rows, *numbers)
    return _axis.back(result, scores, dim)


def _special(
    operator: str,
    scores: Tensor,
    k: float | Tensor,
    method: object,
    temperature: Any,
    dim: int | tuple[int, ...] | None,
    largest: bool,
    mask: Tensor | None,
) -> Tensor:
    """Along several axes, of a jagged tensor or a DTensor, or where scores decide about τ."""
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, soft

        alike, settings = getattr(soft, operator), {"method": method, "largest": largest}
        return _jagged.per_score(alike, scores, dim, mask, k, temperature=temperature, **settings)
    _check.floating_dtype("scores", scores)
    if not isinstance(k, Tensor):
        _check.k_among(k, _forms.number_of_scores(scores, dim), dim)
    temperature = calibration.of_topk(
        temperature, scores, k, method=method, dim=dim, largest=largest, mask=mask
    )
    if not _forms.special(scores, dim):
        return _apply(operator, scores, k, method, temperature, dim, largest, mask)
    usual = {"soft_topk": soft_topk, "log_soft_topk": log_soft_topk}[operator]
    numbers = {"k": k, "temperature": temperature}
    options = {"method": method, "largest": largest}
    cut = partial(_cut.topk, operator)
    return _forms.elementwise(usual, cut, scores, dim, mask, numbers, options)
