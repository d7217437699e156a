"""log p of one element a row, for several k: what a top-k loss needs of a threshold method.

It takes one threshold per row and k, and no p (kernels/one_entry). The graph keeps the scores and
a few numbers per row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from softorder import _check
from softorder.kernels import one_entry
from softorder.kernels._autograd import wanted
from softorder.relaxations.masses import log_masses

if TYPE_CHECKING:
    from softorder.relaxations.threshold import ThresholdMethod


def log_entries(
    method: ThresholdMethod, scores: Tensor, index: Tensor, ks: tuple[int, ...], temperature: Tensor
) -> Tensor:
    """log p of the elements `index` (rows,) of scores (rows, n), as float64 (rows, len(ks))."""
    number = method.number
    if number is None or not (_check.eager() or _check.traceable()):
        return log_masses(method, scores, index, ks, temperature)
    learns = torch.is_grad_enabled() and (scores.requires_grad or temperature.requires_grad)
    if learns and temperature.requires_grad:
        temperature = temperature.expand(scores.shape[:-1])
    if learns and _check.eager():
        return _LogEntries.apply(scores, index, temperature, ks, number, method)
    found: Tensor = one_entry.log_entries(scores, index, temperature, ks, number)[0]
    return found


class _LogEntries(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        index: Tensor,
        temperature: Tensor,
        ks: tuple[int, ...],
        number: int,
        method: ThresholdMethod,
    ) -> Tensor:
        found: Tensor
        found, b = one_entry.log_entries(scores, index, temperature, ks, number)
        kept = scores, index, temperature, b
        ctx.save_for_backward(*kept)
        ctx.like = [(value.shape, value.dtype) for value in kept]
        ctx.statics = ks, number, method
        return found

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        _check.unpacked(saved, ctx.like)
        scores, index, temperature, _ = saved
        ks, number, method = ctx.statics
        needs = ctx.needs_input_grad[0], ctx.needs_input_grad[2]
        if torch.is_grad_enabled() or not _check.eager():
            with torch.enable_grad():
                entries = log_masses(method, scores, index, ks, temperature)
                found = wanted(entries, (scores, temperature), needs, upstream)
        else:
            one = torch.ones((), dtype=torch.float64, device=upstream.device)
            found = one_entry.vjp(one, upstream, *saved, ks, number, needs[1])
        by_temperature = found[1] if needs[1] else None
        return found[0] if needs[0] else None, None, by_temperature, None, None, None
