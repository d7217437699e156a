"""Permutahedron methods: soft ranks and sorts as projections, by isotonic regression."""

from __future__ import annotations

from types import MappingProxyType

from torch import Tensor

from softorder import _check
from softorder.kernels import permutahedron
from softorder.kernels._operators import Fused
from softorder.kernels.permutahedron import reference
from softorder.relaxations import fused
from softorder.relaxations._base import Method, register

REGULARIZATIONS = ("l2", "kl")


class PermutahedronMethod(Method):
    """Projections onto a permutahedron, the hull of all orders of a vector, ρ = (n, ..., 1):

        rank = the point nearest to x/τ in the hull of the orders of ρ
        sort = the point nearest to ρ/τ in the hull of the orders of x        (descending)

    "l2" measures by the Euclidean distance. "kl" measures by relative entropy: ranks are projected
    as exponentials exp(x/τ), and the sort projects exp(ρ/τ) onto the hull of the orders of exp(x)
    and takes the logarithm. With s and w, the point and the vector, both sorted, and the blocks B
    of an isotonic regression,

        l2:  s_i - mean_B(s) + mean_B(w)        kl:  s_i - log Σ_B e^s + log Σ_B e^w

    Derivatives are those of this formula: the blocks are locally constant. `temperature` is what
    fast-soft-sort and torchsort call regularization_strength.

    What it breaks: the temperature of a sort is a strength, measured in 1/score, so that values do
    not scale with scores and temperature together; as it grows the sort becomes the mean plus ρ/τ.
    Two copies of every score are not ranked as one. The entropy of "kl" favours no symmetry
    between ranks from below and from above, and its sort is not homogeneous at all.

    Args:
        regularization: "l2" or "kl".

    Paper: Blondel et al. (2020).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([5.0, 1.0, 2.0])
    >>> so.soft_rank(scores, method="permutahedron", temperature=2.0)
    tensor([3.0000, 1.2500, 1.7500])
    >>> so.soft_sort(scores, method="permutahedron", temperature=1.0)
    tensor([1.6667, 2.6667, 3.6667])
    """

    operators = ("soft_rank", "soft_sort")
    breaks = MappingProxyType(
        {
            "soft_rank": ("doubled_scores_double_their_ranks",),
            "soft_sort": ("scales_with_scores_and_temperature", "values_are_homogeneous"),
        }
    )
    cost = "O(n log n)"
    paper = "Fast differentiable sorting and ranking (Blondel et al. 2020)"

    def __init__(self, regularization: str = "l2") -> None:
        _check.choice("regularization", regularization, REGULARIZATIONS)
        self.regularization = regularization
        self.name = "permutahedron" if regularization == "l2" else f"permutahedron_{regularization}"
        self.good_for = f"moving from torchsort and fast-soft-sort, regularization {regularization}"
        self.smoothness = "piecewise linear" if regularization == "l2" else "once, by pieces smooth"

    def soft_rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        return self._run(permutahedron.rank, scores, temperature, descending)

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        return self._run(permutahedron.sort, scores, temperature, descending)

    def _run(self, kernel: Fused, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        entropic = self.regularization == "kl"

        def plain(scores: Tensor, temperature: Tensor) -> Tensor:
            name = kernel.forward.name
            return reference.result(scores, temperature, descending, entropic, name=name)

        return fused.run(kernel, scores, temperature, descending, plain, entropic)


register(PermutahedronMethod("l2"), aliases=("torchsort", "fast_soft_sort", "blondel"))
register(PermutahedronMethod("kl"))
