"""Rows of an entropic transport plan, from clean scores."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import transport
from softorder.kernels.formulas import factor_for, multiplied
from softorder.kernels.sort.rows import SortedRows
from softorder.kernels.transport import long_rows
from softorder.kernels.transport.reference import Solution
from softorder.relaxations import masses, transport_rows
from softorder.relaxations.transport_masses import log_below
from softorder.relaxations.transport_plan import transport_plan
from softorder.relaxations.transport_sums import plan_sums

Cost = str | Callable[[Tensor, Tensor], Tensor]  #: "squared", or a function of scores and anchors

_PATIENCE = {"newton": 100, "sinkhorn": 10_000}


class Transport:
    """How plans are found: the options of `so.Sinkhorn`, which explains them."""

    def __init__(
        self,
        solver: str,
        tolerance: float,
        max_iterations: int | None,
        cost: Cost,
        anchors: Tensor | None,
        max_entries: int,
    ) -> None:
        _check.choice("solver", solver, transport.SOLVERS)
        _check.tolerance(tolerance)
        _check.max_iterations(max_iterations)
        _check.methods.cost(cost)
        _check.methods.anchors(anchors)
        _check.count("max_entries", max_entries, least=1)
        self._solver = solver
        self._tolerance = float(tolerance)
        self._max_iterations = max_iterations or _PATIENCE[solver]
        self._cost = cost
        self._anchors = anchors
        self._max_entries = max_entries
        self._warned = False

    @property
    def usual(self) -> bool:
        """Whether cost and anchors are those of the papers."""
        return self._cost == "squared" and self._anchors is None

    @property
    def homogeneous(self) -> bool:
        """Whether scores and ε may be multiplied by one number."""
        return not callable(self._cost)

    def rows(
        self,
        scores: Tensor,
        temperature: Tensor,
        descending: bool,
        thresholds: int,
        k: int,
        dtype: torch.dtype = torch.float64,
    ) -> tuple[Tensor, Solution]:
        """The first k rows of the plan with so many thresholds, and how they were found."""
        if thresholds >= long_rows.LONG:
            _check.methods.plan_size(scores.shape[-1], thresholds, self._max_entries)
        scores = scores.double()
        rows = transport_rows.with_infinities(scores)
        x = scores if rows is None else torch.where(scores.isfinite(), scores, 0.0)
        x, temperature = self._in_range(x, temperature)
        if thresholds < 1:
            p, solution = _one_anchor(x, temperature)[..., :k, :].to(dtype), _nothing_to_solve(x)
        else:
            problem = self._problem(scores, x, rows, descending, thresholds)
            p, solution = self._finite_rows(*problem, temperature, k, dtype)
        return p if rows is None else rows.with_certain(scores, p, descending), solution

    def sums(
        self, scores: Tensor, temperature: Tensor, descending: bool, of: Tensor | None
    ) -> Tensor | None:
        """The ranks of a whole permutation, or `of` summed over each of its places.

        By windows, O(n √(ε n)); None where the scores are few, not all finite, or not at hand.
        """
        scores = scores.double()
        n, plain = scores.shape[-1], _check.eager() and self.usual and self._solver == "newton"
        if n < long_rows.LONG or not plain or not _check.known_finite(scores):
            return None
        x, temperature = self._in_range(scores, temperature)
        gains = (-2 if descending else 2) * x
        levels, total = transport_rows.levels(scores, None, n - 1, descending)
        solution = self._solve(gains.unsqueeze(-2), levels, total, temperature)
        return plan_sums(gains, temperature, of, levels, total, solution, self._max_entries)

    def log_masses(
        self, scores: Tensor, temperature: Tensor, thresholds: int, ks: tuple[int, ...]
    ) -> Tensor:
        """log Σ_{j≤k} P_ji of a descending plan for ascending k, (..., len(ks), n) in float64."""
        scores = scores.double()
        rows = transport_rows.with_infinities(scores)
        x = scores if rows is None else torch.where(scores.isfinite(), scores, 0.0)
        x, temperature = self._in_range(x, temperature)
        inner = tuple(k for k in ks if k <= thresholds)
        logs = []
        if inner:
            problem = self._problem(scores, x, rows, True, thresholds)
            logs.append(self._log_below(*problem, temperature, inner))
        if len(inner) < len(ks):  # k = n takes everything
            logs += [0 * _one_anchor(x, temperature)] * (len(ks) - len(inner))
        found = logs[0] if len(logs) == 1 else torch.cat(logs, -2)
        if rows is None:
            return found
        certain = rows.with_certain(scores, found.new_zeros(max(ks), 1), True).cumsum(-2)
        certain = masses.log_of(certain[..., [k - 1 for k in ks], :])
        here = scores.isfinite().unsqueeze(-2) & ~certain.isnan()  # NaN is that of the whole row
        return torch.where(here, found, certain)

    def _in_range(self, x: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
        """Finite scores and ε such that no sum of gains overflows: all that counts is gains/ε."""
        if not self.homogeneous or x.shape[-1] == 0:
            return x, temperature
        factor = factor_for(x.detach().abs().amax(-1, keepdim=True))
        if factor is None:
            return x, temperature
        return factor * x, multiplied(temperature, factor)

    def _problem(
        self, scores: Tensor, x: Tensor, rows: SortedRows | None, descending: bool, thresholds: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Gains, levels and total, as in kernels/transport/contract.py; x are the finite scores."""
        gains = self.gains(-x if descending else x, thresholds + 1)
        if rows is not None:
            gains = torch.where(scores.isfinite().unsqueeze(-2), gains, math.inf)
        return gains, *transport_rows.levels(scores, rows, thresholds, descending)

    def _log_below(
        self,
        gains: Tensor,
        levels: Tensor,
        total: Tensor,
        temperature: Tensor,
        ks: tuple[int, ...],
    ) -> Tensor:
        solution = self._solve(gains, levels, total, temperature)
        found = log_below(gains, temperature, levels, total, solution, ks)
        taken = levels[..., [k - 1 for k in ks]] <= 0  # by scores of +inf
        return torch.where(taken.unsqueeze(-1), masses.LEAST, found)

    def _finite_rows(
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
        options = self._solver, self._tolerance, self._max_iterations, self._max_entries
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

    def gains(self, x: Tensor, places: int) -> Tensor:
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


def _one_anchor(x: Tensor, temperature: Tensor) -> Tensor:
    """The plan that holds everything in one place; the derivatives are 0."""
    return (1 + 0 * x + 0 * temperature.unsqueeze(-1)).unsqueeze(-2)


def _nothing_to_solve(scores: Tensor) -> Solution:
    """Of one anchor."""
    rows, none = scores.shape[:-1], scores.new_empty(*scores.shape[:-1], 0)
    iterations = torch.zeros(rows, dtype=torch.int32, device=scores.device)
    return Solution(none, none, iterations, scores.new_zeros(rows))
