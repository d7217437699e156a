"""Solvers of entropic transport onto a few ordered anchors, in plain torch: Newton and Sinkhorn.

A score whose step from anchor l to l + 1 gains E_l - z_l sits at anchor a with probability

    P_a ∝ exp Σ_{l<a} (E_l - z_l)        Q_j = Σ_{a≤j} P_a        U_j = Σ_{a>j} P_a

and z must make L_j scores sit at the anchors up to j: Σ Q_j = L_j. This is the gradient of the
semi-dual, which is concave in z; its Hessian, up to the sign, is J_jl = Σ Q_min(j,l) U_max(j,l), a
sum of positive terms: it loses no digits however cold and hard the plan is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels.formulas import at_hand
from softorder.kernels.transport import long_rows
from softorder.kernels.transport.damping import Trial, next_trial
from softorder.kernels.transport.steps import (
    curvature,
    hard_thresholds,
    logits,
    reached,
    scale_of,
    sides,
    solve_curvature,
    steps_of,
)

NEWTON, SINKHORN = 0, 1

_REACH = 45.0  # exp(-_REACH) of a score is nothing


class Problem(NamedTuple):
    """Rows of E and L; both have the thresholds on axis 1."""

    steps: Tensor  #: E (rows, thresholds, scores)
    levels: Tensor  #: L (rows, thresholds)
    present: Tensor  #: which scores take part (rows, 1, scores)
    total: Tensor  #: how many do, with those that are certainly at the last anchor (rows, 1)

    @property
    def open(self) -> Tensor:
        """Thresholds with scores on both sides; the others stay where they are."""
        return (self.levels > 0) & (self.levels < self.total)

    def rows(self, which: Tensor) -> Problem:
        return Problem(*(value[which] for value in self))


class Solution(NamedTuple):
    """The thresholds are centre + temperature · rest."""

    centre: Tensor
    rest: Tensor
    iterations: Tensor  #: passes over the plan, one number per row
    error: Tensor  #: the largest |Σ Q_j - L_j| of a row, when it was last looked at


def solve(
    gains: Tensor,
    levels: Tensor,
    total: Tensor,
    temperature: Tensor,
    solver: int,
    tolerance: float,
    max_iterations: int,
    max_entries: int,
) -> Solution:
    """Gains are (rows, 1 or thresholds, scores); the rest is in kernels/transport/contract.py."""
    values = torch.sort(gains, -1).values
    centre = hard_thresholds(values, levels)
    scale = scale_of(temperature)
    if solver == NEWTON and long_rows.serves(gains, levels):
        row = gains.squeeze(1), levels, centre, scale[..., 0, 0]
        return Solution(centre, *long_rows.solve(*row, tolerance, max_iterations, max_entries))
    if gains.shape[1] == 1:
        gains = values[..., : reached(values.squeeze(1), levels, scale.squeeze(-1), _REACH)]
    steps = steps_of(gains, levels, total, centre, scale)
    problem = Problem(steps, levels, gains[:, :1].isfinite(), total)
    advance = _newton if solver == NEWTON else _sinkhorn
    return Solution(centre, *_iterate(problem, advance, tolerance, max_iterations))


class _Look(NamedTuple):
    """What one pass over the plan learns."""

    log_plan: Tensor
    below: Tensor
    above: Tensor
    residual: Tensor


_Advance = Callable[[Problem, Trial, _Look], Trial]


def _iterate(
    problem: Problem, advance: _Advance, tolerance: float, max_iterations: int
) -> tuple[Tensor, Tensor, Tensor]:
    """From z = 0, every row for itself: one that is done is left out.

    The first step is always Sinkhorn's, which does nearly everything in a warm plan.
    """
    rest = torch.zeros_like(problem.levels)
    iterations = torch.zeros(rest.shape[0], dtype=torch.int32, device=rest.device)
    error = torch.zeros_like(rest[:, 0])
    trial = Trial.at(rest)
    active = torch.arange(rest.shape[0], device=rest.device)
    for turn in range(max_iterations):
        look = _look(problem, trial.z)
        iterations[active] += 1
        error[active] = look.residual.abs().amax(-1)
        trial = (advance if turn else _sinkhorn)(problem, trial, look)
        left = error[active] > tolerance
        # The next step is known already, and where this one is good it can only help.
        rest[active] = torch.where(left.unsqueeze(-1), trial.base, trial.z)
        if not left.all():
            active, problem, trial = active[left], problem.rows(left), trial.rows(left)
            if not len(active):
                break
    return rest, iterations, error


def _look(problem: Problem, z: Tensor) -> _Look:
    log_plan = torch.log_softmax(logits(problem.steps - z.unsqueeze(-1)), -2)
    below, above = sides(log_plan.exp())
    return _Look(log_plan, below, above, _residual(problem, below, above))


def _residual(problem: Problem, below: Tensor, above: Tensor) -> Tensor:
    """Σ Q_j - L_j: what is on the wrong side, so that no digits are lost when that is little."""
    hard = problem.steps < 0
    astray = torch.where(hard, -above, below).sum(-1) + (hard.sum(-1) - problem.levels)
    return torch.where(problem.open, astray, 0.0)


def _newton(problem: Problem, trial: Trial, look: _Look) -> Trial:
    """Newton's step, or one that goes less far."""
    J = curvature(look.below, look.above)
    step, failed = solve_curvature(J, -look.residual.unsqueeze(-1), torch.finfo(J.dtype).tiny)
    step = step.squeeze(-1)
    if not at_hand(failed) or failed.any():
        simple = _sinkhorn(problem, trial, look).step
        step = torch.where(failed.unsqueeze(-1), simple, step)
    return next_trial(trial, look.residual, step)


def _sinkhorn(problem: Problem, trial: Trial, look: _Look) -> Trial:
    """Sinkhorn's step: every anchor's weight changes by what it lacks, in the log domain."""
    ends = problem.levels.clamp(min=0).minimum(problem.total)
    edges = torch.cat([torch.zeros_like(ends[:, :1]), ends, problem.total], -1)
    wanted = torch.diff(edges, dim=-1)
    log_plan = look.log_plan.masked_fill(~problem.present, -torch.inf)
    beyond = problem.total - problem.present.sum(-1)
    held = torch.logsumexp(log_plan, -1)
    held = torch.cat([held[:, :-1], torch.logaddexp(held[:, -1:], beyond.log())], -1)
    change = torch.where(wanted > 0, wanted.log() - held, 0.0)
    step = torch.where(problem.open, -torch.diff(change, dim=-1), 0.0)
    return Trial.plain(trial.z, step)
