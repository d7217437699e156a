"""Permutahedron methods: soft ranks and sorts as projections, by isotonic regression."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import MappingProxyType

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import isotonic, isotonic_fused, ordering
from softorder.methods import fused
from softorder.methods._base import register
from softorder.methods.finite import FiniteMethod

REGULARIZATIONS = ("l2", "kl")


class PermutahedronMethod(FiniteMethod):
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
        self._fused_rank, self._fused_sort = map(self._fused, ("rank", "sort"))
        self.smoothness = "piecewise linear" if regularization == "l2" else "once, by pieces smooth"

    def _fused(self, operator: str) -> fused.Operator:
        entropic = self.regularization == "kl"
        return fused.Operator(
            partial(isotonic_fused.project, operator=operator, entropic=entropic),
            partial(isotonic_fused.project_vjp, operator=operator, entropic=entropic),
        )

    def soft_rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        plain = partial(super().soft_rank, temperature=temperature, descending=descending)
        return self._run(self._fused_rank, scores, temperature, descending, plain)

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        plain = partial(super().soft_sort, temperature=temperature, descending=descending)
        return self._run(self._fused_sort, scores, temperature, descending, plain)

    def _run(
        self,
        operator: fused.Operator,
        scores: Tensor,
        temperature: Tensor,
        descending: bool,
        plain: Callable[[Tensor], Tensor],
    ) -> Tensor:
        if fused.usable(temperature) and isotonic_fused.serves(scores, temperature):
            return fused.run(operator, scores, temperature, descending, plain)
        return plain(scores)

    def _ranks(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool
    ) -> Tensor:
        dtype, (z, order, there) = x.dtype, _from_the_top(x.double(), live, negated=descending)
        places = _places_down(there)
        if self.regularization == "kl":
            places = places.log()
        # Measured from the middle one, so that an outlier does not cost the others their digits.
        middle = (there.sum(-1, keepdim=True) // 2).clamp(max=x.shape[-1] - 1)
        z = (z - z.detach().gather(-1, middle)) / temperature.unsqueeze(-1)
        ranks = self._project(z, places, there)
        if self.regularization == "kl":
            ranks = ranks.exp()
        return torch.empty_like(ranks).scatter(-1, order, ranks).to(dtype)

    def _values(
        self, x: Tensor, live: Tensor | None, temperature: Tensor, descending: bool
    ) -> Tensor:
        z, _, there = _from_the_top(x.double(), live, negated=not descending)
        target = _places_down(there) / temperature.unsqueeze(-1)
        t = self._project(target.expand_as(z), z, there)
        return (t if descending else -t).to(x.dtype)

    def _project(self, s: Tensor, w: Tensor, there: Tensor) -> Tensor:
        """The projection of s, both descending, where there is something; 0 elsewhere."""
        s, w = torch.where(there, s, 0.0), torch.where(there, w, 0.0)
        first = isotonic.blocks(torch.where(there, s, -math.inf), w, self.regularization)
        average = _mean if self.regularization == "l2" else _log_sum
        # Relative to the first of a block, s is exact however large it is, and nothing overflows.
        start = w.detach().gather(-1, first)
        ds, dw = s - s.detach().gather(-1, first), w - start
        return (ds - average(ds, first)) + (start + average(dw, first))


def _from_the_top(x: Tensor, live: Tensor | None, negated: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Scores, or their negatives, from the largest down, the order, and which places are live."""
    if live is not None:
        x = torch.where(live, x, math.inf if negated else -math.inf)
    order = ordering.sort(x).order
    order = order if negated else order.flip(-1)
    there = torch.ones_like(x, dtype=torch.bool) if live is None else live.gather(-1, order)
    z = torch.where(there, x.gather(-1, order), 0.0)
    return -z if negated else z, order, there


def _places_down(there: Tensor) -> Tensor:
    """m, ..., 2, 1 for the m elements of a row, and 1 behind them."""
    place = torch.arange(there.shape[-1], device=there.device)
    return (there.sum(-1, keepdim=True) - place).clamp(min=1).double()


def _sum(v: Tensor, first: Tensor) -> Tensor:
    """Over each block, at all of its places."""
    return torch.zeros_like(v).scatter_add(-1, first, v).gather(-1, first)


def _mean(v: Tensor, first: Tensor) -> Tensor:
    return _sum(v, first) / _sum(torch.ones_like(v), first)


def _log_sum(v: Tensor, first: Tensor) -> Tensor:
    """log Σ e^v, where v is 0 at the first place of a block and nowhere more."""
    return _sum(v.exp(), first).log()


register(PermutahedronMethod("l2"), aliases=("torchsort", "fast_soft_sort", "blondel"))
register(PermutahedronMethod("kl"))
