"""Newton's method for doubly stochastic matrices, in plain torch, from hot to cold.

With A = scores/τ and P the row softmax of A - v, the potentials v minimise the convex

    f(v) = Σ_i log Σ_j exp(A_ij - v_j) + Σ_j v_j      ∇f = 1 - Pᵀ1      ∇²f = L(P) if Pᵀ1 = 1,

where L(P) is the Laplacian of the weights PᵀP between columns. Sinkhorn's iteration, a step of
which is v += log(Pᵀ1), slows down like the second eigenvalue of PᵀP, which is near 1 in a cold
plan; Newton's does not. Its step d is shortened by log(1 + r)/r, r = max d - min d, which is sure
to descend: f has |f'''| ≤ r f'' along a line. To keep r small, a cold matrix is solved at
temperatures that halve, from one where it is easy; the potentials times τ change little then.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from softorder.kernels.transport.steps import solve_curvature

_EASY = 8.0  # the spread of scores/τ from which nothing is hard
_NEAR = 0.3  # by how much columns may miss 1 when the temperature is halved
_ROUNDING = 16.0  # units in the last place of scores/τ that columns cannot be nearer than


class Solution(NamedTuple):
    potentials: Tensor  #: v (..., n)
    iterations: Tensor  #: passes over the matrix
    error: Tensor  #: the largest |Σ_i P_ij - 1|, when it was last looked at
    converged: Tensor  #: whether that is as small as it should be


class _State(NamedTuple):
    """Matrices on their way."""

    scores: Tensor
    goal: Tensor  # the temperature that is wanted
    tolerance: Tensor
    temperature: Tensor
    potentials: Tensor

    def rows(self, which: Tensor) -> _State:
        return _State(*(value[which] for value in self))


def solve(scores: Tensor, goal: Tensor, tolerance: float, max_iterations: int) -> Solution:
    """Scores are (matrices, n, n), goal (matrices,)."""
    potentials = torch.zeros_like(scores[..., 0])
    iterations = torch.zeros_like(goal, dtype=torch.int32)
    error, converged = torch.zeros_like(goal), torch.ones_like(goal, dtype=torch.bool)
    if scores.numel() == 0:
        return Solution(potentials, iterations, error, converged)
    state, active = _start(scores, goal, tolerance), torch.arange(len(goal), device=goal.device)
    for _ in range(max_iterations):
        plan = row_softmax(state.scores, state.temperature, state.potentials)
        columns = plan.sum(-2)
        off = (columns - 1).abs().amax(-1)
        arrived = state.temperature <= state.goal
        # The next step is known already, and where this one is good it can only help.
        state = state._replace(potentials=state.potentials + _step(plan, columns))
        left = ~(arrived & (off <= state.tolerance))
        potentials[active], error[active], converged[active] = state.potentials, off, ~left
        iterations[active] += 1
        state = _cooler(state, off)
        if not left.all():
            active, state = active[left], state.rows(left)
            if not len(active):
                break
    return Solution(potentials, iterations, error, converged)


def row_softmax(scores: Tensor, temperature: Tensor, potentials: Tensor) -> Tensor:
    """P."""
    return torch.softmax(scores / temperature[..., None, None] - potentials.unsqueeze(-2), -1)


def laplacian(plan: Tensor) -> Tensor:
    """L(P), whose diagonal is a sum of the others: it loses no digits in a cold plan."""
    weights = plan.mT @ plan
    weights = weights - torch.diag_embed(weights.diagonal(dim1=-2, dim2=-1))
    return torch.diag_embed(weights.sum(-1)) - weights


def _solve_laplacian(plan: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """b with L(P) b = right and b_n = 0, for a right side that sums to 0; and where that failed."""
    grounded = laplacian(plan)[..., :-1, :-1]
    tiny = torch.finfo(plan.dtype).tiny
    b, failed = solve_curvature(grounded, right[..., :-1].unsqueeze(-1), tiny)
    return torch.nn.functional.pad(b.squeeze(-1), (0, 1)), failed


def _start(scores: Tensor, goal: Tensor, tolerance: float) -> _State:
    spread = scores.amax((-1, -2)) - scores.amin((-1, -2))
    rounding = _ROUNDING * torch.finfo(scores.dtype).eps * (spread / goal)
    least = torch.full_like(goal, tolerance)
    return _State(
        scores,
        goal,
        torch.maximum(least, rounding),
        torch.maximum(goal, spread / _EASY),
        torch.zeros_like(scores[..., 0]),
    )


def _step(plan: Tensor, columns: Tensor) -> Tensor:
    """Newton's step, shortened; Sinkhorn's where that failed."""
    step, failed = _solve_laplacian(plan, columns - 1)
    failed = failed.unsqueeze(-1) | ~step.isfinite().all(-1, keepdim=True)
    sinkhorn = columns.clamp(min=torch.finfo(columns.dtype).tiny).log()
    reach = step.amax(-1, keepdim=True) - step.amin(-1, keepdim=True)
    short = torch.where(reach > 0, reach.log1p() / reach, 1.0)
    return torch.where(failed, sinkhorn, short * step)


def _cooler(state: _State, off: Tensor) -> _State:
    """Half the temperature, with potentials to match, where the columns are near 1."""
    near = off < _NEAR
    cooler = torch.maximum(state.temperature / 2, state.goal)
    temperature = torch.where(near, cooler, state.temperature)
    potentials = state.potentials * (state.temperature / temperature).unsqueeze(-1)
    return state._replace(temperature=temperature, potentials=potentials)
