"""The law P(x) ∝ e^<θ,x> over the subsets x of k of n units: log P(x), and its gradient x - E[x].

Contract. `logits` is float32 or float64, (rows, n), -inf for units that take no part and +inf for
those that are certain; `size` (rows,) is float64 and whole, at most the number of units that take
part; `draws` (draws, rows, n) has the dtype of the logits. log P is float64, (draws, rows), and
-inf for what cannot be drawn. With it come, for the way back, the shifts b of the logits (2, rows),
as thresholds have them, and the angles and complex weights of POINTS points of a circle, float64
(rows, POINTS) and (rows, POINTS, 2); circle.py says what these are.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softorder.kernels._operators import Operator, library
from softorder.kernels.subsets import cpu, reference
from softorder.kernels.subsets.circle import MOST_POINTS as POINTS


def _fake(logits: Tensor, size: Tensor, draws: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    rows = logits.shape[0]
    log_p = logits.new_empty(draws.shape[:2], dtype=torch.float64)
    angle, weight = log_p.new_empty(rows, POINTS), log_p.new_empty(rows, POINTS, 2)
    return log_p, logits.new_empty(2, rows), angle, weight


def _fake_vjp(upstream: Tensor, logits: Tensor, *others: Any) -> Tensor:
    return logits.new_empty(logits.shape)


log_prob = Operator(
    "subsets_log_prob(Tensor logits, Tensor size, Tensor draws)"
    " -> (Tensor log_prob, Tensor b, Tensor angle, Tensor weight)",
    reference=reference.log_prob,
    cpu=cpu.log_prob,
    fake=_fake,
)
vjp = Operator(
    "subsets_vjp(Tensor upstream, Tensor logits, Tensor size, Tensor draws, Tensor b,"
    " Tensor angle, Tensor weight) -> Tensor",
    reference=reference.vjp,
    cpu=cpu.vjp,
    fake=_fake_vjp,
)


# ---- the derivative under torch.compile ---------------------------------------------------------


def _remember(ctx: Any, inputs: tuple[Tensor, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*inputs, *output[1:])


def _backward(ctx: Any, upstream: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    return vjp.dispatched(upstream.contiguous(), *ctx.saved_tensors), None, None


torch.library.register_autograd(
    "softorder::subsets_log_prob", _backward, setup_context=_remember, lib=library
)
