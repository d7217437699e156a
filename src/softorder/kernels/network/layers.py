"""Soft comparator networks layer by layer, in plain torch: forward for values, back for rows."""

from __future__ import annotations

import torch
from torch import Tensor

from softorder.kernels.formulas import reciprocal
from softorder.kernels.network import comparators
from softorder.kernels.network.program import Program, Step


def wires_first(x: Tensor, descending: bool) -> tuple[Tensor, Tensor]:
    """The first score of every row, and the differences to it, or from it, wires first.

    Only differences count: what all scores have in common shall not cost digits.
    """
    start = x.detach()[..., :1]
    return start, (start - x if descending else x - start).movedim(-1, 0)


def forward(
    plan: Program, values: Tensor, comparator: str, count: Tensor | None, temperature: Tensor
) -> tuple[Tensor, list[Tensor]]:
    """The last list of values (wires first), and what the comparators of each layer keep.

    Comparators beyond the first `count` wires of a row do nothing.
    """
    step_function = comparators.step(comparator)
    scale = reciprocal(temperature, values.dtype)
    limit = torch.finfo(values.dtype).max ** 0.5
    if not plan.steps:  # a single score, that depends on everything by 0
        values = values + 0 * scale
    kept = []
    for step in plan.steps:
        a, b = values.index_select(0, step.low), values.index_select(0, step.high)
        keep = step_function(((b - a) * scale).clamp(-limit, limit))
        if count is not None:
            keep = torch.where(_column(step.wire, keep) < count, keep, 1.0)
        swap = (1 - keep) * (b - a)
        values = torch.cat([a + swap, b - swap, values]).index_select(0, step.taken)
        kept.append(keep)
    return values, kept


def back_to_front(plan: Program, values: Tensor, kept: list[Tensor]) -> Tensor:
    """Q = E A_t ... A_1 with the wires first, (n, ..., k): E takes the outputs."""
    k = len(plan.outputs)
    units = torch.nn.functional.one_hot(plan.outputs, values.shape[0]).T.to(values.dtype)
    q = units.reshape(-1, *(1,) * (values.dim() - 1), k) + 0 * values.unsqueeze(-1)
    for step, keep in zip(reversed(plan.steps), reversed(kept), strict=True):
        q = _layer_back(step, keep.unsqueeze(-1), q)
    return q


def _layer_back(step: Step, keep: Tensor, q: Tensor) -> Tensor:
    """q A for one layer: from its list behind to its list before."""
    q = torch.cat([q, torch.zeros_like(q[:1])])  # what was dropped counts 0
    a, b = q.index_select(0, step.low_behind), q.index_select(0, step.high_behind)
    swap = (1 - keep) * (b - a)
    parts = torch.cat([a + swap, b - swap, q.index_select(0, step.rest_behind)])
    return parts.index_select(0, step.before)


def _column(index: Tensor, like: Tensor) -> Tensor:
    return index.reshape(-1, *(1,) * (like.dim() - 1))
