"""The column potentials that make exp(scores/τ) doubly stochastic.

Contract. `scores` is a finite float64 tensor (..., n, n), `temperature` is float64 and broadcasts
over the matrices. The rows of

    P_ij = softmax_j(scores_ij/τ - v_j)

sum to 1, and v (..., n) is such that the columns do too, to the tolerance or to what the rounding
of scores/τ leaves. v is unique but for a constant. Matrices do not see each other.

The operator `softorder::balance` is not differentiable: relaxations/balanced.py is.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from softorder.kernels._operators import Operator, in_front, library
from softorder.kernels.balance import reference
from softorder.kernels.balance.reference import Solution


def solve(scores: Tensor, temperature: Tensor, tolerance: float, max_iterations: int) -> Solution:
    """The potentials of every matrix, the number of iterations and the error that was left."""
    tensors = scores.detach(), temperature.detach()
    return Solution(*_solve.dispatched(*tensors, tolerance, max_iterations))


def _balance(
    scores: Tensor, temperature: Tensor, tolerance: float, max_iterations: int
) -> tuple[Tensor, ...]:
    shape, n = scores.shape[:-2], scores.shape[-1]
    matrices = math.prod(shape)
    found = reference.solve(
        scores.reshape(matrices, n, n),
        temperature.expand(shape).reshape(matrices),
        tolerance,
        max_iterations,
    )
    return found.potentials.reshape(*shape, n), *(v.reshape(shape) for v in found[1:])


def _fake(scores: Tensor, *_: Any) -> tuple[Tensor, ...]:
    shape = scores.shape[:-2]
    return (
        scores.new_empty(scores.shape[:-1]),
        scores.new_empty(shape, dtype=torch.int32),
        scores.new_empty(shape),
        scores.new_empty(shape, dtype=torch.bool),
    )


_solve = Operator(
    "balance(Tensor scores, Tensor temperature, float tolerance, int max_iterations)"
    " -> (Tensor potentials, Tensor iterations, Tensor error, Tensor converged)",
    reference=_balance,
    fake=_fake,
)


@torch.library.register_vmap("softorder::balance", lib=library)
def _(
    info: Any, in_dims: tuple, scores: Tensor, temperature: Tensor, *options: Any
) -> tuple[tuple, tuple[int, ...]]:
    matrices = scores.dim() - 2 - (in_dims[0] is not None)
    scores = in_front(scores, in_dims[0], matrices + 2)
    scores = scores.expand(info.batch_size, *scores.shape[1:])
    temperature = in_front(temperature, in_dims[1], matrices)
    return torch.ops.softorder.balance(scores, temperature, *options), (0,) * 4
