"""Projections onto convex sets, by the names under which they are known.

The soft top-k of the uniform density is a projection onto a capped simplex, and the balanced matrix
of `so.sinkhorn` is one onto the doubly stochastic matrices. Here they are with their sets as
arguments: points in, points out, no temperature but for the entropic one.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.ops.balance import sinkhorn
from softorder.ops.topk import soft_topk

__all__ = ["birkhoff", "box_section", "capped_simplex", "simplex"]

Axes = int | tuple[int, ...] | None


def simplex(
    scores: Tensor, total: float = 1.0, *, dim: Axes = -1, mask: Tensor | None = None
) -> Tensor:
    """The nearest point with entries >= 0 that sum to a total; for total = 1, "sparsemax".

        argmin_p ‖p - scores‖²    over  {p >= 0, Σ p = total}

    The solution is p_i = max(scores_i - b, 0) with the one b that makes the sum right. With S the
    places where p > 0, ∂p_i/∂scores_j = [i, j in S] ([i = j] - 1/|S|). Time O(n), without a sort.

    Args:
        scores: as in `so.soft_topk`. -inf gets 0.
        total: > 0.
        dim: the axis, several of them, or None for all, along which the sum is taken.
        mask: boolean, broadcasts to scores; False takes no part, gets 0 and no gradient.

    Returns:
        p, with the shape and the dtype of scores.

    Papers: Held et al. 1974; sparsemax (Martins & Astudillo 2016).

    >>> import torch, softorder as so
    >>> so.projections.simplex(torch.tensor([0.9, 0.3, -1.0]))
    tensor([0.8000, 0.2000, 0.0000])
    """
    _check.positive("total", total)
    # p/total is in [0, 1] and sums to 1
    share = soft_topk(scores, 1, method="uniform", temperature=total, dim=dim, mask=mask)
    return share * total


def capped_simplex(
    scores: Tensor,
    budget: float | Tensor,
    cap: float = 1.0,
    *,
    dim: Axes = -1,
    mask: Tensor | None = None,
) -> Tensor:
    """The nearest point with entries between 0 and a cap that sum to a budget.

        argmin_p ‖p - scores‖²    over  {0 <= p <= cap, Σ p = budget}

    The solution is p_i = clip(scores_i - b, 0, cap) with the one b that makes the sum right. With S
    the places where 0 < p < cap, ∂p_i/∂scores_j = [i, j in S] ([i = j] - 1/|S|) and
    ∂p_i/∂budget = [i in S]/|S|. Time O(n): nothing is sorted.

    Args:
        scores: as in `so.soft_topk`.
        budget: in [0, n cap], a number or a tensor that broadcasts over the rows. May require grad.
        cap: > 0.
        dim: as in `simplex`.
        mask: as in `simplex`. Where fewer than budget/cap take part, each of them gets the cap.

    Returns:
        p, with the shape and the dtype of scores. For cap = 1 it is `so.soft_topk` by "uniform",
        whose temperature divides the scores.

    >>> import torch, softorder as so
    >>> so.projections.capped_simplex(torch.tensor([1.5, 0.6, 0.4, -1.0]), 2)
    tensor([1.0000, 0.6000, 0.4000, 0.0000])
    """
    _check.positive("cap", cap)
    _check.sections.budget(budget, cap, scores, dim)
    share = soft_topk(scores, budget / cap, method="uniform", temperature=cap, dim=dim, mask=mask)
    return share * cap


def box_section(
    scores: Tensor,
    lower: float | Tensor,
    upper: float | Tensor,
    total: float | Tensor,
    weights: Tensor | None = None,
    *,
    dim: int = -1,
    mask: Tensor | None = None,
) -> Tensor:
    """The nearest point in a box on a hyperplane: a knapsack that may be cut.

        argmin_p ‖p - scores‖²    over  {lower <= p <= upper, Σ_i w_i p_i = total}

    The solution is p_i = clip(scores_i - λ w_i, lower_i, upper_i) with the λ that makes the sum
    right. The sum falls with λ by pieces that are linear between the 2n points where an entry
    reaches a bound; a bisection over these finds the piece, and on it, with S the entries between
    their bounds, λ = (Σ_S w scores + Σ_{not S} w p - total)/Σ_S w². That formula is differentiated:
    all of scores, lower, upper, total and weights may require grad.

    Args:
        scores: of any shape with at least one axis; all finite.
        lower: a number or a tensor that broadcasts to scores; may be -inf.
        upper: likewise; may be +inf, and is >= lower.
        total: between Σ w lower and Σ w upper; a number or a tensor that broadcasts over the rows.
        weights: w > 0, broadcasts to scores; ones if None.
        dim: the axis along which the sum is taken.
        mask: boolean, broadcasts to scores; False takes no part, gets 0 and no gradient.

    Returns:
        p, with the shape and the dtype of scores. Time O(n log n).

    Paper: Pardalos & Kovoor 1990.

    >>> import torch, softorder as so
    >>> target = torch.tensor([0.5, 2.0, -1.0])
    >>> so.projections.box_section(target, 0.0, torch.tensor([1.0, 1.0, 3.0]), 2.5)
    tensor([1.0000, 1.0000, 0.5000])
    """
    _check.scores(scores, dim)
    _check.mask(mask, scores)
    wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
    bounds = [_check.sections.beside(n, v, scores) for n, v in (("lower", lower), ("upper", upper))]
    w = _check.sections.beside("weights", 1.0 if weights is None else weights, scores)
    low, high, w = (_axis.last(v.expand(scores.shape), dim).to(wide) for v in (*bounds, w))
    x, part = _axis.last(scores, dim).to(wide), _axis.beside(mask, scores, dim)
    if part is not None:  # an entry between 0 and 0 is no part of anything
        low, high = (torch.where(part, v, 0.0) for v in (low, high))
        x, w = torch.where(part, x, 0.0), torch.where(part, w, 1.0)
    aim = _check.sections.total(total, scores, dim).to(wide)
    _check.sections.feasible(low, high, w, aim)
    if x.shape[-1] == 0:
        return scores.clone()
    return _axis.back(_section(x, low, high, w, aim.expand(x.shape[:-1])), scores, dim)


def birkhoff(
    scores: Tensor,
    *,
    temperature: float | Tensor = 1.0,
    tolerance: float = 1e-12,
    max_iterations: int = 1000,
) -> Tensor:
    """The nearest doubly stochastic matrix, by relative entropy: `so.sinkhorn` by another name.

        argmin_P Σ_ij P_ij (log P_ij - scores_ij/τ)    over  {P >= 0, P 1 = 1, Pᵀ 1 = 1}

    This is the projection of the matrix exp(scores/τ), in the sense of Kullback and Leibler, onto
    the polytope that Birkhoff's theorem is about. As τ → 0 it becomes the best assignment. The
    arguments are those of `so.sinkhorn`.

    >>> import torch, softorder as so
    >>> P = so.projections.birkhoff(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))
    >>> P.numpy().round(3)
    array([[0.622, 0.378],
           [0.378, 0.622]], dtype=float32)
    """
    options = {"tolerance": tolerance, "max_iterations": max_iterations}
    return sinkhorn(scores, temperature=temperature, **options)  # type: ignore[arg-type]


def _section(x: Tensor, low: Tensor, high: Tensor, w: Tensor, total: Tensor) -> Tensor:
    """p on the last axis, from the λ of its piece."""
    with torch.no_grad():
        free = _free(*(v.detach() for v in (x, low, high, w, total)))
    fixed = torch.where(free < 0, low, torch.where(free > 0, high, 0.0))
    between = free == 0
    square = torch.where(between, w * w, 0.0).sum(-1)
    some = square > 0
    rest = torch.where(between, w * x, w * fixed).sum(-1) - total
    multiplier = torch.where(some, rest / torch.where(some, square, 1.0), 0.0)
    inner = x - multiplier.unsqueeze(-1) * w
    inner = inner + (inner.detach().clamp(low.detach(), high.detach()) - inner.detach())
    return torch.where(between, inner, fixed)


def _free(x: Tensor, low: Tensor, high: Tensor, w: Tensor, total: Tensor) -> Tensor:
    """-1 where p is at its lower bound, 1 at its upper one, 0 between them."""
    turns = torch.cat([(x - high) / w, (x - low) / w], -1)
    turns = torch.where(turns.isfinite(), turns, math.inf).sort().values
    known = turns.isfinite().sum(-1)
    turns = torch.where(turns.isfinite(), turns, 0.0)

    def above(place: Tensor) -> Tensor:
        """Whether the sum at that turn is not below the total: λ is there, or further."""
        turn = turns.gather(-1, place.clamp(0, turns.shape[-1] - 1).unsqueeze(-1))
        return (w * torch.clamp(x - turn * w, low, high)).sum(-1) >= total

    first, last = torch.zeros_like(known), known  # the number of turns that λ is not below
    for _ in range(int(turns.shape[-1]).bit_length()):
        middle = (first + last) // 2
        up = (first < last) & above(middle)
        first, last = (
            torch.where(up, middle + 1, first),
            torch.where(up | (first >= last), last, middle),
        )
    left = turns.gather(-1, (first - 1).clamp(min=0).unsqueeze(-1)).squeeze(-1)
    right = turns.gather(-1, first.clamp(max=turns.shape[-1] - 1).unsqueeze(-1)).squeeze(-1)
    inside = 0.5 * left + 0.5 * right
    at = torch.where(first == 0, right - 1, torch.where(first == known, left + 1, inside))
    at = torch.where(known == 0, 0.0, at)
    p = x - at.unsqueeze(-1) * w
    state = (p > high).to(x.dtype) - (p < low).to(x.dtype)
    return torch.where(low == high, 1.0, state)
