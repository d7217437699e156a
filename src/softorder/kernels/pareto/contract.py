"""The law of Pareto sampling, P(x) = Π σ(±u_i) <c,x>; levels.py says what the weights c are.

Contract. All of it is float64: `u` (rows, n) with Σ σ(u) = k, ±inf for units that are certain;
`size` (rows,), k; `draws` (draws, rows, n), 0 and 1. Where `fine`, less than 1e-16 is left out,
else 1e-11.

    weights    c, (rows, n)
    log_prob   log P(x), -inf for what cannot be drawn, and <c,x>, (draws, rows)
    vjp        for shares (rows, n), Σ upstream/<c,x> over the draws that have a unit, the gradient
               of the logits but for Σ upstream of these draws, and, where u > 0, that of all draws
"""

from __future__ import annotations

from torch import Tensor

from softorder.kernels._operators import Operator
from softorder.kernels.pareto import cpu, reference


def _like_u(u: Tensor, *others: object) -> Tensor:
    return u.new_empty(u.shape)


def _fake(u: Tensor, size: Tensor, draws: Tensor, fine: bool) -> tuple[Tensor, Tensor]:
    return u.new_empty(draws.shape[:-1]), u.new_empty(draws.shape[:-1])


weights = Operator(
    "pareto_weights(Tensor u, Tensor size, bool fine) -> Tensor",
    reference=reference.weights,
    cpu=cpu.weights,
    fake=_like_u,
)
log_prob = Operator(
    "pareto_log_prob(Tensor u, Tensor size, Tensor draws, bool fine)"
    " -> (Tensor log_prob, Tensor taken)",
    reference=reference.log_prob,
    cpu=cpu.log_prob,
    fake=_fake,
)
vjp = Operator(
    "pareto_vjp(Tensor u, Tensor size, Tensor shares, bool fine) -> Tensor",
    reference=reference.vjp,
    cpu=cpu.vjp,
    fake=_like_u,
)
