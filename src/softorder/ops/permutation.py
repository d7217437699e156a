"""soft_permutation."""

from __future__ import annotations

from torch import Tensor

from softorder import _axis, _check
from softorder import hard as limits
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.ops import _forms, _rows
from softorder.ops._method import computation
from softorder.ops._straight import straight_through
from softorder.ops.calibration import of_order


def soft_permutation(
    scores: Tensor,
    *,
    k: int | None = None,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
) -> Tensor:
    """How much every score belongs to every place: a doubly stochastic matrix P.

    With F the CDF of an even density, the method, and thresholds t_j such that j scores are softly
    below them, FSum(t_j) = Σ_i F((t_j - scores_i)/τ) = j, t_0 = -∞, t_n = +∞,

        P_ji = F((t_j - scores_i)/τ) - F((t_{j-1} - scores_i)/τ)

    is the part of score i between two of them. Rows and columns sum to 1, so P @ scores averages:
    as τ → 0 it becomes the sorted scores, and P becomes `so.hard.permutation`.

    Args:
        scores: as in `so.soft_rank`.
        k: compute only the first k rows: with descending=True a sorted soft top-k, whose sum over
            the rows is `so.soft_topk(scores, k)`. Needs only k thresholds.
        method: as in `so.soft_rank`.
        temperature: as in `so.soft_rank`.
        descending: True for the largest score in the first row.
        mask: as in `so.soft_rank`. What takes no part has the last rows, one each.
        dim: the axis along which the scores are sorted; several of them, or None for all, are
            taken as one, in which the last of them is the fastest.
        hard: True for the value of `so.hard.permutation` with the gradient of the soft one, known
            as straight-through: what comes next sees a hard order, and the scores still learn.

    Returns:
        P of shape (..., k or n, n) and the dtype of scores, with `dim` moved to the end: places on
        the last but one axis, scores on the last. Time and memory O(k n).

    Paper: LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.3, 2.0, -1.0])
    >>> so.soft_permutation(scores, temperature=0.4).numpy().round(3)
    array([[0.098, 0.001, 0.901],
           [0.844, 0.059, 0.097],
           [0.059, 0.939, 0.002]], dtype=float32)
    >>> so.soft_permutation(scores, k=1, temperature=0.4, descending=True).numpy().round(3)
    array([[0.059, 0.939, 0.002]], dtype=float32)
    """
    _check.ragged.no_matrices("scores", scores)
    if hard is not False:
        common = {"k": k, "dim": dim, "descending": descending, "mask": mask}
        both = soft_permutation, limits.permutation, hard
        return straight_through(*both, (scores,), common, method=method, temperature=temperature)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    if not isinstance(dim, int):
        options = {"k": k, "method": method, "temperature": temperature, "descending": descending}
        return _forms.reduced(soft_permutation, scores, _axis.axes(scores, dim), mask, options)
    _rows.check(scores, temperature, dim, descending, mask)
    n = scores.shape[dim]
    _check.whole_k(k, n)
    compute = computation("soft_permutation", method)
    x, k = _rows.rows(scores, dim, mask), n if k is None else k
    if n == 0:
        return x.unsqueeze(-2)[..., :k, :].to(scores.dtype)  # empty, and part of the graph
    return compute(x, _axis.per_row(temperature, x, dim), descending, k).to(scores.dtype)
