"""Sums over the pairs of a list in which one element is preferred to the other; and the gradient:

    Σ w_ij φ(x_i - x_j)  over pairs with grade_i > grade_j     φ(u) = log(1 + e^-u) or max(0, 1 - u)

with weights of one of these kinds, p_i the place of element i by its score (equal ones as they
come), D a discount for every place and B a bound for every distance of two places,

    product    own_i own_j                        first   own_i D(p_i)
    exchange   |own_i - own_j| |D(p_i) - D(p_j)|  bound   |own_i - own_j| B(|p_i - p_j|)
    both       |own_i - own_j| (|D(p_i) - D(p_j)| + B(|p_i - p_j|))

where B is 0 if both places are behind the `first` so many.

Contract. `x`, `grades`, `own` and `scores` are (rows, n), `discount` and `bound` (n,), all of them
float32 or all float64. `own` is 1 where it is None; products need no scores and no tables. What
takes no part has the grade -inf. With it come, in float64 (3, rows), the sums; Σ own_i own_j of
the products, or Σ own/D in the order of the grades, the highest first; and the number of pairs.
Where `slopes` are wanted, the gradient of the first sum is (rows, n), else it is empty.
"""

from __future__ import annotations

from torch import Tensor

from softorder.kernels._operators import Operator
from softorder.kernels.pairs import cpu, reference
from softorder.kernels.pairs.reference import Weighing


def _fake(
    x: Tensor,
    grades: Tensor,
    own: Tensor | None,
    scores: Tensor | None,
    discount: Tensor | None,
    bound: Tensor | None,
    weighing: int,
    first: int,
    hinge: bool,
    slopes: bool,
) -> tuple[Tensor, Tensor]:
    return cpu.empty(x, slopes)


pair_sums = Operator(
    "pair_sums(Tensor x, Tensor grades, Tensor? own, Tensor? scores, Tensor? discount,"
    " Tensor? bound, int weighing, int first, bool hinge, bool slopes)"
    " -> (Tensor found, Tensor gradient)",
    reference=reference.pair_sums,
    cpu=cpu.pair_sums,
    fake=_fake,
)

__all__ = ["Weighing", "pair_sums"]
