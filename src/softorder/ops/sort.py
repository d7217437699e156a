"""soft_sort."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from softorder import _check
from softorder.densities import Density
from softorder.ops import _cut, _forms, _rows
from softorder.ops._method import computation


def soft_sort(
    scores: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: float | Tensor = 1.0,
    dim: int = -1,
    descending: bool = False,
    mask: Tensor | None = None,
) -> Tensor:
    """The scores in ascending order, as a smooth function of them.

    With F the CDF of an even density, the method, FSum(t) = Σ_i F((t - scores_i)/τ) counts softly
    how many scores are below t. The j-th smallest is where it passes j - 1/2:

        sort_j = t_j  with  FSum(t_j) = j - 1/2,    j = 1..n

    The result never descends. With d_ji = f((t_j - scores_i)/τ), S_j = Σ_i d_ji and upstream v,

        ∂L/∂scores_i = Σ_j (v_j/S_j) d_ji        ∂L/∂τ = Σ_j (v_j/S_j) Σ_i d_ji (t_j - scores_i)/τ.

    As τ → 0 this is torch.sort; a large τ spreads the values far beyond the scores. Time O(n log n)
    for the densities of the library, O(n²) for your own; memory O(n); derivatives included. The
    arguments are those of `so.soft_rank`. What takes no part goes last in both directions: +inf at
    the end of an ascending result, -inf at the end of a descending one.

    Paper: LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.3, 2.0, -1.0, 2.0])
    >>> so.soft_sort(scores, temperature=0.01).numpy().round(3)
    array([-1.   ,  0.3  ,  1.993,  2.007], dtype=float32)
    >>> so.soft_sort(scores, temperature=0.01, descending=True).numpy().round(3)
    array([ 2.007,  1.993,  0.3  , -1.   ], dtype=float32)
    """
    if type(dim) is int and _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        numbers, options = (
            {"temperature": temperature},
            {"method": method, "descending": descending},
        )
        cut = partial(_cut.order, "soft_sort")
        return _forms.elementwise(soft_sort, cut, scores, dim, mask, numbers, options)
    _rows.check(scores, temperature, dim, descending, mask)
    compute = computation("soft_sort", method)
    return _rows.along(compute, scores, temperature, dim, descending, mask)
