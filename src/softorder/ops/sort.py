"""soft_sort."""

from __future__ import annotations

from functools import partial

from torch import Tensor

from softorder import _check
from softorder import hard as limits
from softorder._auto import Temperature
from softorder.densities import Density
from softorder.ops import _cut, _forms, _rows
from softorder.ops._method import computation, method_of
from softorder.ops._straight import straight_through
from softorder.ops.calibration import of_order


def soft_sort(
    scores: Tensor,
    *,
    method: str | Density | object = "laplace",
    temperature: Temperature = 1.0,
    dim: int | tuple[int, ...] | None = -1,
    descending: bool = False,
    mask: Tensor | None = None,
    hard: bool = False,
    within: bool = False,
) -> Tensor:
    """The scores in ascending order, as a smooth function of them.

    With F the CDF of an even density, the method, FSum(t) = Σ_i F((t - scores_i)/τ) counts softly
    how many scores are below t. The j-th smallest is where it passes j - 1/2:

        sort_j = t_j  with  FSum(t_j) = j - 1/2,    j = 1..n

    The result never descends. With d_ji = f((t_j - scores_i)/τ), S_j = Σ_i d_ji and upstream v,

        ∂L/∂scores_i = Σ_j (v_j/S_j) d_ji        ∂L/∂τ = Σ_j (v_j/S_j) Σ_i d_ji (t_j - scores_i)/τ.

    As τ → 0 this is torch.sort. FSum/n is the distribution function of a score with noise of the
    density f(·/τ)/τ, so the sorted values have its variance in addition to their own, and **leave
    the range of the scores**: those of a thousand zeros reach from -6.9 to 6.9 at τ = 1.

    within=True stays inside. It gives the means P @ scores with the P of `so.soft_permutation`,
    without the matrix. Rows and columns of P sum to 1, so these values have the sum of the scores,
    and a spread that is never larger: they err towards the mean. With U distributed as f, a score
    and its place are each at most τ E|U| away from a common point, on average over all places:

        (1/n) Σ_j |sort_j - hard sort_j| ≤ 2 τ E|U|

    where E|U| = 1 (laplace), 2 ln 2 (logistic), √(2/π) (normal), 1/4 (uniform), ∞ (cauchy). They
    ascend, but for roundings, if log f is concave, which it is for all of these but "cauchy".
    Methods that are no densities average scores already: for them it changes nothing.

    Time O(n log n) for the built-in densities; memory O(n); derivatives included. The arguments
    are those of `so.soft_rank`. Several axes are taken as one and filled row by row, the last of
    them fastest, so that the result has the shape of scores; its `.flatten()` is in order for
    dim=None. What takes no part goes last in both directions: +inf at the end of an ascending
    result, -inf at the end of a descending one. With hard=True the value is that of `so.hard.sort`.

    Paper: LapSum (Struski et al. 2025).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.3, 2.0, -1.0, 2.0])
    >>> so.soft_sort(scores, temperature=0.01).numpy().round(3)
    array([-1.   ,  0.3  ,  1.993,  2.007], dtype=float32)
    >>> so.soft_sort(scores, temperature=0.01, descending=True).numpy().round(3)
    array([ 2.007,  1.993,  0.3  , -1.   ], dtype=float32)
    >>> so.soft_sort(torch.zeros(1000))[-1], so.soft_sort(torch.zeros(1000), within=True)[-1]
    (tensor(6.9078), tensor(0.))
    """
    plain = hard is False and within is False
    if plain and _rows.usual(scores, temperature, dim, descending, mask):
        compute = computation("soft_sort", method)
        return _rows.along(compute, scores, temperature, dim, descending, mask)
    if _forms.is_jagged(scores):
        from softorder.ragged import _jagged, soft

        settings = {"method": method, "temperature": temperature, "descending": descending}
        given = {**settings, "hard": hard, "within": within}
        return _jagged.per_score(soft.soft_sort, scores, dim, mask, **given)
    _check.flag("within", within)
    if hard is not False:
        common = {"dim": dim, "descending": descending, "mask": mask}
        both = partial(soft_sort, within=within), limits.sort, hard
        return straight_through(*both, (scores,), common, method=method, temperature=temperature)
    temperature = of_order(temperature, scores, method=method, dim=dim, mask=mask)
    if _forms.special(scores, dim):
        _check.floating_dtype("scores", scores)
        numbers, options = (
            {"temperature": temperature},
            {"method": method, "descending": descending, "within": within},
        )
        # the places of several axes have an order only where they are together
        cut = partial(_cut.order, "soft_sort") if isinstance(dim, int) else _cut.no_order
        return _forms.elementwise(soft_sort, cut, scores, dim, mask, numbers, options)
    assert isinstance(dim, int)
    _rows.check(scores, temperature, dim, descending, mask)
    served = method_of("soft_sort", method)
    compute = served.soft_sort_within if within else computation("soft_sort", method)
    return _rows.along(compute, scores, temperature, dim, descending, mask)
