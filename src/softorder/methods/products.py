"""P @ values, the values in the soft order of the scores, from the matrix that a method gives."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softorder.methods.balanced import balanced

if TYPE_CHECKING:
    from softorder.methods._base import Method

_LAW = "rows_and_columns_sum_to_one"
_TOLERANCE, _ITERATIONS = 1e-12, 1000


def matrix_product(
    method: Method,
    scores: Tensor,
    values: Tensor,
    temperature: Tensor,
    descending: bool,
    k: int,
) -> Tensor:
    """The first k entries, in float64: O(n k), or O(n³) where columns have to be made to sum to 1.

    A P that is only row stochastic is scaled by Sinkhorn's iteration, or rather to its limit: P_ji
    becomes P_ji e^-(u_j + v_i). Otherwise an element could be wanted for several places.
    """
    scaled = _LAW in method.breaks.get("soft_permutation", ())
    rows = scores.shape[-1] if scaled else k
    compute = getattr(method, "soft_permutation")  # noqa: B009, a method need not have it
    p = compute(scores.double(), temperature, descending, rows)
    if scaled:
        # a share that underflows is none, and what takes no part has a row of its own
        logits = p.clamp(min=torch.finfo(p.dtype).tiny).log()
        one = torch.ones((), dtype=p.dtype, device=p.device).expand(p.shape[:-2])
        p = balanced(logits, one, _TOLERANCE, _ITERATIONS)[0][..., :k, :]
    return (p * values.to(p.dtype).unsqueeze(-2)).sum(-1)
