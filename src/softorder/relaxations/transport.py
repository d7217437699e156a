"""Entropic optimal transport: SOFT top-k, sorted SOFT top-k and Sinkhorn sort."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from softorder import _axis, _check
from softorder.densities import BUILT_IN
from softorder.kernels.formulas import factor_for, multiplied, with_gradient_of
from softorder.kernels.sort.rows import ascending
from softorder.kernels.transport.windows import MAX_ENTRIES
from softorder.relaxations._base import Method, register
from softorder.relaxations.matrix import sorted_by
from softorder.relaxations.threshold import ThresholdMethod
from softorder.relaxations.transport_forms import FORMS
from softorder.relaxations.transport_solver import Cost, Transport

_LOGISTIC = ThresholdMethod(BUILT_IN["logistic"])


class TransportPlan(NamedTuple):
    """A soft permutation and how it was found."""

    permutation: Tensor  #: as `so.soft_permutation` returns it
    iterations: Tensor  #: passes over the plan, one number per row
    error: Tensor  #: by how much the scores up to any place miss their number, one per row


class Sinkhorn(Method):
    """Entropic transport of the scores to anchors 0, 1, 2, ..., usable as `method=`.

    With C_ai the cost of score i at anchor a, ν_a how many scores belong there, and ε the
    temperature, P solves

        min <C, P> + ε Σ P log P    over P ≥ 0,  Σ_a P_ai = 1,  Σ_i P_ai = ν_a.

    How many anchors there are is the `form`, each also a method of its own name:

        "sinkhorn_sort"  n anchors, ν = 1: the whole permutation, of which a k only cuts rows. From
                         it rank_i = Σ_j j P_ji and sort = P @ scores. (Cuturi et al. 2019)
        "sorted_soft"    k places and one anchor for the rest, ν = (1, ..., 1, n - k): the rows of
                         the places, which depend on k. (Sorted SOFT top-k, Xie et al. 2020)
        "soft"           two anchors, ν = (k, n - k): the chosen and the rest. (SOFT top-k)
        "sinkhorn"       the family: "soft" in soft_topk and log_soft_topk, "sinkhorn_sort" in
                         soft_rank, soft_sort and the top-k losses, and in soft_permutation
                         "sorted_soft" with a k, "sinkhorn_sort" without.

    With C_ai = (scores_i - a)² only 2 a scores_i matters, so a common shift of the scores changes
    nothing, and neighbouring places are separated as softly as by "logistic" with τ = ε/2. With two
    anchors they are the same: "soft" is "logistic" at half the temperature. Cuturi's anchors are
    i/(n - 1): his ε is (n - 1) times smaller than ours, or the same with these `anchors`.

    Args:
        form: "sinkhorn", "sinkhorn_sort", "sorted_soft" or "soft".
        solver: "newton" on the semi-dual, a handful of iterations to full precision; or "sinkhorn",
            in the log domain, which takes the more iterations the smaller ε is.
        tolerance: by how much the scores up to any place may miss their number.
        max_iterations: where to give up, with a warning. None: 100 for Newton, 10,000 for Sinkhorn.
        cost: "squared", or a function of scores (..., 1, n) and anchors (m, 1) that returns the
            costs (..., m, n), differentiable in the scores.
        anchors: where the anchors are: an ascending tensor, of as many numbers as the form has
            anchors (k + 1, but n for k = n). None: 0, 1, 2, ...
        max_entries: how many numbers of a plan may be kept, for rows of 256 scores and more; a
            larger plan is refused.

    With the usual cost and anchors and finite scores, ranks and sorted values of long rows keep
    only the part of the plan that is not nothing: about √(ε n) places of every score.

    With descending=True, for the largest k and in losses, the negative scores are transported.

    What it breaks: all anchors share one plan, so a threshold moves when there are others beside
    it. The rows of "sorted_soft" are not those of the whole permutation; neither add up to "soft";
    and a sorted value is a mean of scores, which a raised score can lower by leaving its place.

    Papers: SOFT top-k (Xie et al. 2020), whose derivatives these are; Cuturi et al. (2019).

    >>> import torch, softorder as so
    >>> scores = torch.tensor([0.3, 2.0, -1.0], dtype=torch.float64)
    >>> found = so.Sinkhorn().plan(scores, k=1, temperature=0.8, descending=True)
    >>> found.permutation.numpy().round(3)
    array([[0.104, 0.891, 0.005]])
    >>> bool(found.error < 1e-12), bool(found.iterations < 10)
    (True, True)
    >>> paper = so.Sinkhorn(form="sinkhorn_sort", solver="sinkhorn")
    >>> so.soft_rank(scores, method=paper, temperature=0.8).numpy().round(3)
    array([1.941, 2.901, 1.158])
    """

    smoothness = "smooth"

    def __init__(
        self,
        *,
        form: str = "sinkhorn",
        solver: str = "newton",
        tolerance: float = 1e-12,
        max_iterations: int | None = None,
        cost: Cost = "squared",
        anchors: Tensor | None = None,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        _check.choice("form", form, FORMS)
        self.name = form
        self.cost, self.paper, self.breaks, self.good_for = FORMS[form]
        self.operators = tuple(self.cost)
        self._transport = Transport(solver, tolerance, max_iterations, cost, anchors, max_entries)

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
        _check.methods.serves(self.name, "soft_permutation", self.operators)
        _check.scores(scores, dim)
        _check.temperature(temperature, scores, dim)
        _check.flag("descending", descending)
        _check.mask(mask, scores)
        n = scores.shape[dim]
        _check.whole_k(k, n)
        rows = _axis.rows(scores, dim, largest=True, mask=mask)
        places = n if k is None else k
        options = _axis.per_row(temperature, rows), descending, self._thresholds(places, n), places
        p, solution = self._transport.rows(rows, *options)
        return TransportPlan(p.to(scores.dtype), solution.iterations, solution.error)

    def soft_topk(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        x, temperature = self._two_anchors(scores, temperature)
        return _LOGISTIC.soft_topk(x, k, temperature)

    def log_soft_topk(self, scores: Tensor, k: Tensor, temperature: Tensor) -> Tensor:
        x, temperature = self._two_anchors(scores, temperature)
        return _LOGISTIC.log_soft_topk(x, k, temperature)

    def soft_rank(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        found = self._transport.sums(scores, temperature, descending, None)
        if found is not None:
            return found.to(scores.dtype)
        p, n = self._sorted(scores, temperature, descending), scores.shape[-1]
        places = torch.arange(1, n + 1, dtype=p.dtype, device=p.device)
        ranks = (p * places.unsqueeze(-1)).sum(-2)
        present = (scores > -math.inf).sum(-1, keepdim=True)
        behind = ((present + 1 + n) / 2).to(ranks.dtype)
        absent = (scores == -math.inf) & ~ranks.isnan()
        return torch.where(absent, behind, ranks).to(scores.dtype)

    def soft_sort(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        finite = scores.isfinite()
        x = torch.where(finite, scores, 0.0).double()
        factor = factor_for(x.detach().abs().amax(-1, keepdim=True))
        if factor is not None and self._transport.homogeneous:
            x = with_gradient_of(factor * x, x)
            temperature = with_gradient_of(multiplied(temperature, factor), temperature)
            moving = torch.where(finite, x, scores.double())
        else:
            factor, moving = None, scores
        middle = x.detach().sum(-1, keepdim=True) / finite.sum(-1, keepdim=True).clamp(min=1)
        moved = self._transport.sums(moving, temperature, descending, x - middle)
        if moved is not None:
            values = middle + moved
        else:
            p = self._sorted(moving, temperature, descending)
            values = sorted_by(p, moving.double(), descending)
        if factor is not None:
            values = with_gradient_of(values / factor, values)
        values = -ascending(-values) if descending else ascending(values)
        return values.to(scores.dtype)

    def soft_permutation(
        self, scores: Tensor, temperature: Tensor, descending: bool, k: int
    ) -> Tensor:
        thresholds = self._thresholds(k, scores.shape[-1])
        options = temperature, descending, thresholds, k, scores.dtype
        return self._transport.rows(scores, *options)[0]

    def log_masses(
        self, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
    ) -> Tensor:
        if self.name == "soft":
            x, temperature = self._two_anchors(scores, temperature)
            return _LOGISTIC.log_masses(x, index, ks, temperature)
        found = self.all_log_masses(scores, ks, temperature)
        at = index[:, None, None].expand(-1, 1, len(ks))
        return found.gather(-2, at).squeeze(-2)

    def all_log_masses(self, scores: Tensor, ks: tuple[int, ...], temperature: Tensor) -> Tensor:
        if self.name == "soft":
            x, temperature = self._two_anchors(scores, temperature)
            return _LOGISTIC.all_log_masses(x, ks, temperature)
        n = scores.shape[-1]
        thresholds = min(max(ks), n - 1) if self.name == "sorted_soft" else n - 1
        return self._transport.log_masses(scores, temperature, thresholds, ks).mT

    def _sorted(self, scores: Tensor, temperature: Tensor, descending: bool) -> Tensor:
        """The whole permutation, in float64."""
        n = scores.shape[-1]
        return self._transport.rows(scores, temperature, descending, n - 1, n)[0]

    def _thresholds(self, k: int, n: int) -> int:
        """Between the anchors of so many places."""
        return n - 1 if self.name == "sinkhorn_sort" and k > 0 else min(k, n - 1)

    def _two_anchors(self, scores: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """Scores and temperature of the same soft top-k by "logistic"."""
        if self._transport.usual:
            return scores, temperature / 2
        finite = scores.isfinite()
        gains = self._transport.gains(-torch.where(finite, scores, 0.0), places=2).squeeze(-2)
        return torch.where(finite, -gains, scores), temperature


register(
    Sinkhorn(),
    aliases=("ot", "transport", "entropic", "optimal transport"),
)
register(Sinkhorn(form="sinkhorn_sort"), aliases=("sinkhornsort", "sinkhorn sort", "cuturi"))
register(Sinkhorn(form="sorted_soft"), aliases=("sorted soft top-k", "sorted soft"))
register(Sinkhorn(form="soft"), aliases=("soft top-k", "xie"))
