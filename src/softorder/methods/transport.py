"""Entropic optimal transport: SOFT top-k, sorted SOFT top-k and Sinkhorn sort."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.densities import BUILT_IN
from softorder.kernels import transport
from softorder.kernels.sort.rows import ascending
from softorder.kernels.transport.reference import Solution
from softorder.methods import transport_rows
from softorder.methods._base import Method, register
from softorder.methods.threshold import ThresholdMethod
from softorder.methods.transport_plan import transport_plan

Cost = str | Callable[[Tensor, Tensor], Tensor]  #: "squared", or a function of scores and anchors

_LOGISTIC = ThresholdMethod(BUILT_IN["logistic"])
_PATIENCE = {"newton": 100, "sinkhorn": 10_000}


class TransportPlan(NamedTuple):
    """A soft permutation and how it was found."""

    permutation: Tensor  #: as `so.soft_permutation` returns it
    iterations: Tensor  #: passes over the plan, one number per row
    error: Tensor  #: by how much the scores up to any place miss their number, one per row


class Sinkhorn(Method):
    """Entropic transport of the scores to anchors 0, 1, 2, ..., usable as `method=`.

    With C_ai the cost of score i at anchor a, ν = (1, ..., 1, n - k) for k places and one anchor
    for the rest, and ε the temperature, P solves

        min <C, P> + ε Σ P log P    over P ≥ 0,  Σ_a P_ai = 1,  Σ_i P_ai = ν_a.

    `so.soft_permutation` returns its first k rows, the sorted SOFT top-k; without k there are n
    anchors and no rest: Sinkhorn sort, and from it rank_i = Σ_j j P_ji and sort = P @ scores. With
    C_ai = (scores_i - a)² only 2 a scores_i matters, so a common shift of the scores changes
    nothing, and neighbouring places are separated as softly as by "logistic" with τ = ε/2. With two
    anchors they are the same: soft_topk with this method is "logistic" at half the temperature.

    Args:
        solver: "newton" on the semi-dual, a handful of iterations to full precision; or "sinkhorn",
            in the log domain, which takes the more iterations the smaller ε is.
        tolerance: by how much the scores up to any place may miss their number.
        max_iterations: where to give up, with a warning. None: 100 for Newton, 10,000 for Sinkhorn.
        cost: "squared", or a function of scores (..., 1, n) and anchors (m, 1) that returns the
            costs (..., m, n), differentiable in the scores.
        anchors: where the places are: an ascending tensor of k + 1 numbers, or of n for k >= n - 1
            and for rank and sort. None: 0, 1, 2, ... A soft_topk has two.

    With descending=True, and for the largest k, the negative scores are transported.

    What it breaks: all anchors share one plan, so a threshold moves when there are others beside
    it. The first k rows are not those of the whole permutation, nor do they add up to a soft_topk;
    and a sorted value is a mean of scores, which a raised score can lower by leaving its place.

    Paper: SOFT top-k (Xie et al. 2020). Derivatives are theirs, by implicit differentiation.

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.3, 2.0, -1.0], dtype=torch.float64)
    >>> found = so.Sinkhorn().plan(scores, k=1, temperature=0.8, descending=True)
    >>> found.permutation.numpy().round(3)
    array([[0.104, 0.891, 0.005]])
    >>> bool(found.error < 1e-12), bool(found.iterations < 10)
    (True, True)
    >>> paper = so.Sinkhorn(solver="sinkhorn")
    >>> so.soft_rank(scores, method=paper, temperature=0.8).numpy().round(3)
    array([1.941, 2.901, 1.158])
    """

    name = "sinkhorn"
    operators = ("soft_topk", "log_soft_topk", "soft_rank", "soft_sort", "soft_permutation")
    cost = {  # noqa: RUF012
        "soft_topk": "O(n)",
        "log_soft_topk": "O(n)",
        "soft_rank": "O(n³)",
        "soft_sort": "O(n³)",
        "soft_permutation": "O(n k²)",
    }
    smoothness = "smooth"
    paper = "SOFT top-k (Xie et al. 2020)"
    breaks = MappingProxyType(
        {
            "soft_rank": ("doubled_scores_double_their_ranks",),
            "soft_sort": ("raising_a_score_lowers_nothing",),
            "soft_permutation": (
                "first_rows_are_the_first_rows",
                "descending_rows_add_up_to_a_soft_topk",
            ),
        }
    )

    def __init__(
        self,
        *,
        solver: str = "newton",
        tolerance: float = 1e-12,
        max_iterations: int | None = None,
        cost: Cost = "squared",
        anchors: Tensor | None = None,
    ) -> None:
        _check.choice("solver", solver, transport.SOLVERS)
        _check.tolerance(tolerance)
        _check.max_iterations(max_iterations)
        _check.methods.cost(cost)
        _check.methods.anchors(anchors)
        self._solver = solver
        self._tolerance = float(tolerance)
        self._max_iterations = max_iterations or _PATIENCE[solver]
        self._cost = cost
        self._anchors = anchors
        self._warned = False

    def plan(
        self,
        scores: Tensor,
        *,
        k: int | None = None,
        temperature: float | Tensor = 1.0,
        dim: int = -1,
        descending: bool = False,
        mask: Tensor | None = None,
    ) -> TransportPlan:
        """`so.soft_permutation` by this method, with its convergence. The same arguments."""
        _check.scores(scores, dim)
        _check.temperature(temperature, scores, dim)
        _check.flag("descending", descending)
        _check.mask(mask, scores)
        n = scores.shape[dim]
        _check.whole_k(k, n)
        rows = _axis.rows(scores, dim, largest=True, mask=mask)
        places = n if k is None else k
        p, solution = self._permutation(rows, _axis.per_row(temperature, rows), descending, places)
        return TransportPlan(p.to(scores.dtype), solution.iterations, solution.error)

    def soft_topk(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        return _LOGISTIC.soft_topk(*self._two_anchors(scores, k, temperature))

    def log_soft_topk(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        return _LOGISTIC.log_soft_topk(*self._two_anchors(scores, k, temperature))

    def soft_rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        n = scores.shape[-1]
        p, _ = self._permutation(scores, temperature, descending, n)
        places = torch.arange(1, n + 1, dtype=p.dtype, device=p.device)
        ranks = (p * places.unsqueeze(-1)).sum(-2)
        present = (scores > -math.inf).sum(-1, keepdim=True)
        behind = ((present + 1 + n) / 2).to(ranks.dtype)
        return torch.where(scores == -math.inf, behind, ranks).to(scores.dtype)

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        n = scores.shape[-1]
        p, _ = self._permutation(scores, temperature, descending, n)
        finite = scores.isfinite()
        x = torch.where(finite, scores, 0.0).to(p.dtype)
        middle = x.detach().sum(-1, keepdim=True) / finite.sum(-1, keepdim=True).clamp(min=1)
        beside = torch.where(finite, x - middle, 0.0)
        values = middle + (p * beside.unsqueeze(-2)).sum(-1)
        values = transport_rows.complete(values, scores, descending)
        values = -ascending(-values) if descending else ascending(values)
        return values.to(scores.dtype)

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        return self._permutation(scores, temperature, descending, k, scores.dtype)[0]

    def _permutation(
        self,
        scores: Tensor,
        temperature: Tensor,
        descending: bool,
        k: int,
        dtype: torch.dtype = torch.float64,
    ) -> tuple[Tensor, Solution]:
        """The first k rows of the plan, and how they were found."""
        scores = scores.double()
        rows = transport_rows.with_infinities(scores)
        thresholds = min(k, scores.shape[-1] - 1)
        x = scores if rows is None else torch.where(scores.isfinite(), scores, 0.0)
        if thresholds < 1:
            p, solution = _one_anchor(x, temperature)[..., :k, :].to(dtype), _nothing_to_solve(x)
        else:
            gains = self._gains(-x if descending else x, thresholds + 1)
            if rows is not None:
                gains = torch.where(scores.isfinite().unsqueeze(-2), gains, math.inf)
            levels, total = transport_rows.levels(scores, rows, thresholds, descending)
            p, solution = self._rows(gains, levels, total, temperature, k, dtype)
        return p if rows is None else rows.with_certain(scores, p, descending), solution

    def _rows(
        self,
        gains: Tensor,
        levels: Tensor,
        total: Tensor,
        temperature: Tensor,
        k: int,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Solution]:
        """Of the scores that have any part in the first k places; the others get 0."""
        n, near = gains.shape[-1], transport_rows.near(gains, levels, temperature, k, dtype)
        if near is not None:
            gains = gains.gather(-1, near)
        solution = self._solve(gains, levels, total, temperature)
        p = transport_plan(gains, temperature, levels, total, solution)[..., :k, :].to(dtype)
        if near is not None:
            p = p.new_zeros(*p.shape[:-1], n).scatter(-1, near.expand(p.shape), p)
        return p, solution

    def _solve(self, gains: Tensor, levels: Tensor, total: Tensor, temperature: Tensor) -> Solution:
        options = self._solver, self._tolerance, self._max_iterations
        solution = transport.solve(gains, levels, total, temperature, *options)
        if not self._warned and solution.error.numel() and _check.at_hand(solution.error):
            self._warn(solution.error.max().item())
        return solution

    def _warn(self, error: float) -> None:
        """Says once that it did not converge."""
        if not error <= self._tolerance:
            self._warned = True
            warnings.warn(
                f"{self._solver} stopped after {self._max_iterations} iterations with marginals "
                f"off by {error:.1e}, more than the tolerance of {self._tolerance:.1e}",
                stacklevel=2,
            )

    def _gains(self, x: Tensor, places: int) -> Tensor:
        """C_l - C_{l+1} but for constants: what a score gains by going on to the next anchor."""
        _check.methods.anchors(self._anchors, places)
        x = x.unsqueeze(-2)
        if self._anchors is None:
            anchors = torch.arange(places, dtype=x.dtype, device=x.device).unsqueeze(-1)
        else:
            anchors = self._anchors.to(x).unsqueeze(-1)
        if callable(self._cost):
            return -self._cost(x, anchors).diff(dim=-2)
        return 2 * x if self._anchors is None else 2 * x * anchors.diff(dim=-2)

    def _two_anchors(
        self, scores: Tensor, k: Tensor, temperature: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The same soft top-k for "logistic"."""
        if self._cost == "squared" and self._anchors is None:
            return scores, k, temperature / 2
        finite = scores.isfinite()
        gains = self._gains(-torch.where(finite, scores, 0.0), places=2).squeeze(-2)
        return torch.where(finite, -gains, scores), k, temperature


def _one_anchor(x: Tensor, temperature: Tensor) -> Tensor:
    """The plan that holds everything in one place; the derivatives are 0."""
    return (1 + 0 * x + 0 * temperature.unsqueeze(-1)).unsqueeze(-2)


def _nothing_to_solve(scores: Tensor) -> Solution:
    """Of one anchor."""
    rows, none = scores.shape[:-1], scores.new_empty(*scores.shape[:-1], 0)
    iterations = torch.zeros(rows, dtype=torch.int32, device=scores.device)
    return Solution(none, none, iterations, scores.new_zeros(rows))


register(Sinkhorn(), aliases=("soft", "ot", "transport", "entropic", "optimal transport"))
